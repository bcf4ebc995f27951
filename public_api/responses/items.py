"""Convert items of OpenAI's responses to messages, and earlier turns to entries of a conversation.

Pure. A reply is one message with its calls, and several items.
https://platform.openai.com/docs/guides/conversation-state
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from public_api.openai.growing_answer import Row
from public_api.openai.messages import PROMPT_ROLES, Entry, RequestMessage

_SAID_BY_TURNS: Final = frozenset({"assistant", "tool_call", "tool", "file"})
"""Roles that later turns repeat no more: what a library said counts for its own turn."""

_KEPT: Final = ("tool_call", "file_id", "provider_fields")


@dataclass(frozen=True, slots=True)
class Reference:
    """An item of an earlier response, by its id."""

    id: str


Item = RequestMessage | Reference


def messages_of(items: Iterable[RequestMessage]) -> list[RequestMessage]:
    """Return the messages. Adjacent calls, and the text before them, are one reply."""
    messages: list[RequestMessage] = []
    for item in items:
        if item.calls and messages and messages[-1].role == "assistant":
            before = messages[-1]
            messages[-1] = replace(
                before,
                calls=(*before.calls, *item.calls),
                provider_fields={**item.provider_fields, **before.provider_fields},
                sender=before.sender or item.sender,
            )
        else:
            messages.append(item)
    return messages


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
