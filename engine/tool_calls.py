"""Define a tool call as a value, and its forms in OpenAI's APIs.

The rows that keep calls have a form of their own (`chats.messages.tool_calls`); nothing else writes
one down. Formats: https://platform.openai.com/docs/api-reference/chat/object (`tool_calls`, and the
deprecated `function_call`).
"""

from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict


class CallFields(TypedDict, total=False):
    """What a provider sends with a call, and wants back as it came (`engine.provider_fields`)."""

    extra_content: Any


class FunctionCall(TypedDict):
    """The function and its raw arguments; alone, the form of the deprecated `function_call`."""

    name: str
    arguments: str


class ChatToolCall(TypedDict):
    """An entry of a message's `tool_calls`."""

    id: str
    type: Literal["function"]
    function: FunctionCall
    extra_content: NotRequired[Any]


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
    provider_fields: CallFields = field(default_factory=CallFields, hash=False)


def function_form(call: ToolCall) -> FunctionCall:
    return {"name": call.name, "arguments": call.arguments}


def chat_form(call: ToolCall) -> ChatToolCall:
    """Return a call as a message holds it, with what its provider sent with it."""
    return {
        "id": call.id,
        "type": "function",
        "function": function_form(call),
        **call.provider_fields,
    }
