"""Convert messages in OpenAI's form to a turn's input, and what the turn wrote back to that form.

What `from_output` returns, `to_input` takes back: a client that sends the whole history again gives
the model the same conversation, and what it wants back with it (`engine.provider_fields`). Only
what a tool made besides text (`files`) is not shown again: OpenAI's results hold text alone.

Pure. The messages are those that `public_api.openai.serializers.MessagesField` has read: their
rules hold. Form: https://platform.openai.com/docs/api-reference/chat/create#chat-create-messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from chats.messages.tool_calls import read_call, store_answered_call, store_call
from engine.messages import MessageFields
from engine.provider_fields import REASONING, Fields, stored_form
from engine.tool_calls import ToolCall, chat_form

Entry = dict[str, Any]
"""One message of `Turn.input`."""

OpenAIMessage = dict[str, Any]

SENDER: Final = "amber_sender"
"""Stands in a message beside what a provider wants back, and marks who sent it. A client that
brings it along may go on with another model; without it the fields go to whichever model
answers."""

NOBODY: Final = "none"
"""The mark of reasoning that goes back to no model: it came in no field of its own."""

_MAX_START_DIGITS: Final = 9

PROMPT_ROLES = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class Image:
    """An image part, decoded."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class RemoteImage:
    """An image part that is an address."""

    url: str


Part = str | Image | RemoteImage


@dataclass(frozen=True, slots=True)
class RequestMessage:
    """One message as a client sent it; `parts` is empty for null. `sender` marks whose the
    `provider_fields` are, those of its calls too; empty if the client does not say."""

    role: str
    parts: tuple[Part, ...] = ()
    name: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    provider_fields: MessageFields = field(default_factory=dict)
    sender: str = ""

    @property
    def text(self) -> str:
        return "\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def asks(self) -> bool:
        """Return whether a user says something in it."""
        said = (not isinstance(part, str) or part.strip() for part in self.parts)
        return self.role == "user" and any(said)


def images_of(
    messages: Sequence[RequestMessage], *, first: int = 0
) -> dict[str, Image | RemoteImage]:
    """Return the images by their place in the request, such as `messages.3.content.1`. `first` is
    the number of the first of these messages in it."""
    return {
        _place(number, position): part
        for number, message in enumerate(messages, first)
        for position, part in enumerate(message.parts)
        if not isinstance(part, str)
    }


def sender_mark(sender: str, start: int) -> str:
    """Return the mark that a client brings back; from this character on its reasoning goes back."""
    return f"{sender}+{start}" if start else sender


def read_sender_mark(mark: str, fields: MessageFields) -> tuple[str, MessageFields]:
    """Return the sender, and the fields as they came from it."""
    sender, _, start = mark.partition("+")
    thought = fields.get(REASONING)
    if not start.isdecimal() or not isinstance(thought, str) or len(start) > _MAX_START_DIGITS:
        return sender, fields
    kept = {name: value for name, value in fields.items() if name != REASONING}
    own = thought[int(start) :]
    return sender, {**kept, REASONING: own} if own else kept


def to_input(
    messages: Sequence[RequestMessage], file_ids: Mapping[str, str], *, first: int = 0
) -> list[Entry]:
    """Return `Turn.input["messages"]`. `file_ids` names the files of the images, by place."""
    return [
        entry
        for number, message in enumerate(messages, first)
        for entry in _entries(number, message, file_ids)
    ]


def prompts_of(messages: Sequence[RequestMessage]) -> list[str]:
    """Return the texts of the system messages."""
    return [m.text for m in messages if m.role in PROMPT_ROLES and m.text.strip()]


def after_last_answer(messages: Sequence[RequestMessage]) -> int:
    """Return the number of the first message that has not been answered yet."""
    answers = (number for number, m in enumerate(messages) if m.role == "assistant")
    return max(answers, default=-1) + 1


def _entries(number: int, message: RequestMessage, file_ids: Mapping[str, str]) -> Iterator[Entry]:
    named = {"name": message.name} if message.name else {}
    if message.role in PROMPT_ROLES:
        yield {"role": "system", "content": message.text}
    elif message.role == "user":
        if message.asks and not message.text.strip():  # an image alone is a question too
            yield {"role": "human", "content": "", **named}
        for position, part in enumerate(message.parts):
            if not isinstance(part, str):
                file_id = file_ids[_place(number, position)]
                yield {"role": "file", "content": "", "file_id": file_id, **named}
            else:
                yield {"role": "human", "content": part, **named}
    elif message.role == "tool":
        answered = store_answered_call(ToolCall(message.call_id, "", ""), None)
        yield {"role": "tool", "content": message.text, "tool_call": answered}
    elif message.calls:
        yield from _calls(f"given:{number}", message)
    else:
        kept = stored_form(message.sender, message=message.provider_fields, call={})
        more = {"provider_fields": kept} if kept else {}
        yield {"role": "assistant", "content": message.text, **named, **more}


def _calls(reply_id: str, message: RequestMessage) -> Iterator[Entry]:
    """Return one entry per call; the first has the reply's text."""
    for position, call in enumerate(message.calls):
        of_message: MessageFields = {} if position else message.provider_fields
        kept = stored_form(message.sender, message=of_message, call=call.provider_fields)
        yield {
            "role": "tool_call",
            "content": "" if position else message.text,
            "tool_call": store_call(call, reply_id),
            **({"provider_fields": kept} if kept else {}),
        }


def _place(number: int, position: int) -> str:
    return f"messages.{number}.content.{position}"


def from_output(written: Sequence[Mapping[str, Any]]) -> list[OpenAIMessage]:
    """Return what a turn wrote (messages in their wire form, with their `provider_fields`) as
    OpenAI's messages, in order."""
    messages: list[OpenAIMessage] = []
    reply_id: str | None = None
    for row in written:
        if row["role"] == "tool_call":
            if reply_id is None or row["tool_call"]["reply_id"] != reply_id:
                messages.append({"role": "assistant", "content": None, "tool_calls": []})
            reply_id = row["tool_call"]["reply_id"]
            _add_call(messages[-1], row)
            continue
        reply_id = None
        if row["role"] == "tool":
            call_id = row["tool_call"]["id"]
            result = {"role": "tool", "tool_call_id": call_id, "content": row["content"]}
            messages.append(result | _files(row))
        elif row["role"] == "file":
            _add_file(messages, row)
        else:
            messages.append({"role": "assistant", "content": row["content"], **_beside(row)})
    return messages


def _add_call(message: OpenAIMessage, row: Mapping[str, Any]) -> None:
    message["tool_calls"].append(chat_form(call_in(row)))
    message["content"] = message["content"] or row["content"] or None
    message |= _beside(row)


def message_fields(row: Mapping[str, Any]) -> Fields:
    """Return what a client must send back with this row's message, and the mark of its sender."""
    stored = row.get("provider_fields")
    return {**stored.get("message", {}), SENDER: stored["sender"]} if stored else {}


def _beside(row: Mapping[str, Any]) -> OpenAIMessage:
    """Return what stands beside the form: what was thought, and what a client must send back."""
    fields, thought = dict(message_fields(row)), row.get("reasoning")
    if not thought or REASONING in fields:
        return fields
    sender = sender_mark(fields[SENDER], len(thought)) if fields else NOBODY
    return {**fields, REASONING: thought, SENDER: sender}


def call_in(row: Mapping[str, Any]) -> ToolCall:
    """Return a row's call, with what a client must send back with it."""
    return read_call(row["tool_call"], (row.get("provider_fields") or {}).get("call"))


def _add_file(messages: list[OpenAIMessage], row: Mapping[str, Any]) -> None:
    """Add a file that a call made to the call's result."""
    call_id = (row["tool_call"] or {}).get("id")
    for message in reversed(messages):
        if message["role"] == "tool" and message["tool_call_id"] == call_id:
            message["files"] = [*message.get("files", ()), *_files(row).get("files", ())]
            return


def _files(row: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    file = row.get("file")
    if file is None:
        return {}
    return {"files": [{name: file[name] for name in ("id", "name", "mime_type", "size")}]}
