"""Define a tool call as a value, and convert it to its forms in OpenAI's APIs and back.

Formats: https://platform.openai.com/docs/api-reference/chat/object (`tool_calls`, the deprecated
`function_call`) and …/responses/object (`function_call` items). Rows keep calls in a form of their
own (`chats.messages.tool_calls`); there is no third place that writes one down. What is read has
been checked by the caller.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, cast

CALL_FORM: Final = frozenset(
    {"id", "type", "index", "function", "call_id", "name", "arguments", "status", "role", "content"}
)
"""What the forms of a call name. Whatever else a provider sends with one is its own affair."""

CallFields = Mapping[str, Any]
"""What a provider sends with a call, and wants back as it came (`engine.provider_fields`)."""


class FunctionCall(TypedDict):
    """The function and its raw arguments; alone, the form of the deprecated `function_call`."""

    name: str
    arguments: str


class ChatToolCall(TypedDict):
    """An entry of a message's `tool_calls`."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class CallItem(TypedDict):
    """A call in one level: an item of a response, an event, an entry that waits for approval."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call a model asked for. `arguments` is the raw JSON string it wrote.

    Calls with the same `reply_id` belong to one reply of the model; None stands alone.
    `provider_fields` go back with it as they came.
    """

    id: str
    name: str
    arguments: str
    reply_id: str | None = None
    provider_fields: CallFields = field(default_factory=dict, hash=False)


def function_form(call: ToolCall) -> FunctionCall:
    return {"name": call.name, "arguments": call.arguments}


def chat_form(call: ToolCall) -> ChatToolCall:
    """Return a call as a message holds it, with what its provider sent with it."""
    form = {**call.provider_fields, **wrap_function(call.id, function_form(call))}
    return cast(ChatToolCall, form)


def wrap_function(call_id: str, function: FunctionCall) -> ChatToolCall:
    return {"id": call_id, "type": "function", "function": function}


def read_chat_form(given: Mapping[str, Any], fields: CallFields | None = None) -> ToolCall:
    """Return the call. `fields` came with it."""
    function = given["function"]
    about = given["id"], function["name"], function["arguments"]
    return ToolCall(*about, provider_fields=fields or {})


def item_form(call: ToolCall) -> CallItem:
    return {"call_id": call.id, "name": call.name, "arguments": call.arguments}


def read_item_form(given: Mapping[str, Any], fields: CallFields | None = None) -> ToolCall:
    """Return the call. `fields` came with it."""
    about = given["call_id"], given["name"], given["arguments"]
    return ToolCall(*about, provider_fields=fields or {})
