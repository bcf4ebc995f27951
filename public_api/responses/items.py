"""Convert items of OpenAI's responses to messages, and earlier turns to entries of a conversation.

Pure. A reply is one message with its calls, and several items.
https://platform.openai.com/docs/guides/conversation-state
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from engine.messages import MessageFields
from public_api.openai.growing_answer import Row
from public_api.openai.messages import PROMPT_ROLES, Entry, RequestMessage

_SAID_BY_TURNS: Final = frozenset({"assistant", "tool_call", "tool", "file"})
"""Roles that later turns repeat no more: what a library said counts for its own turn."""

OF_CALL: Final = "amber_call"
"""Holds, in the item of a call, what its provider sent with the call; Gemini's `extra_content` stands
beside it, and so do the fields of the whole reply."""

_KEPT: Final = ("tool_call", "file_id", "provider_fields")


@dataclass(frozen=True, slots=True)
class Reference:
    """An item of an earlier response, by its id."""

    id: str


Item = RequestMessage | Reference


def messages_of(items: Iterable[RequestMessage]) -> list[RequestMessage]:
    """Return the messages. Adjacent calls, and the text before them, are one reply."""
    replies: list[list[RequestMessage]] = []
    for item in items:
        if item.calls and replies and replies[-1][0].role == "assistant":
            replies[-1].append(item)
        else:
            replies.append([item])
    return [reply[0] if len(reply) == 1 else _join_reply(reply) for reply in replies]


def _join_reply(items: Sequence[RequestMessage]) -> RequestMessage:
    """Return one message of a text and its calls; where both bring a field, the first counts."""
    fields: MessageFields = {}
    for item in reversed(items):
        fields = {**fields, **item.provider_fields}
    return replace(
        items[0],
        calls=tuple(call for item in items for call in item.calls),
        provider_fields=fields,
        sender=next((item.sender for item in items if item.sender), ""),
    )


def call_fault(messages: Sequence[RequestMessage], waiting: Iterable[str]) -> str:
    """Return what is wrong with calls and results, in OpenAI's words; empty if nothing is.

    `waiting` are the ids of calls of the response before, whose results must come first.
    """
    open_calls = Counter(waiting)
    for message in messages:
        if message.role == "tool":
            if not open_calls[message.call_id]:
                return f"No tool call found for function call output {message.call_id}."
            open_calls[message.call_id] -= 1
        elif message.role not in PROMPT_ROLES:
            if +open_calls:
                break
            open_calls = Counter(call.id for call in message.calls)
    missing = +open_calls
    return f"No tool output found for function call {next(iter(missing))}." if missing else ""


def entries_of(turn_input: Mapping[str, Any] | None, written: Sequence[Row]) -> list[Entry]:
    """Return a stateless turn's input and what it wrote, as entries of the next turn's input."""
    return [*(turn_input or {}).get("messages", ()), *_entries_of_turn(written)]


def _entries_of_turn(rows: Sequence[Row]) -> Iterable[Entry]:
    for row in rows:
        if row["role"] in _SAID_BY_TURNS:
            kept = {name: row[name] for name in _KEPT if row.get(name)}
            yield {"role": row["role"], "content": row["content"], **kept}
