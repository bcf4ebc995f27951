"""Convert tool calls to the form in which messages keep them, and back.

`ChatMessage.tool_call`, the wire form of messages and `Turn.input` have this form. Pure.
"""

from collections.abc import Mapping
from typing import Any, Final, TypedDict

from engine.tool_calls import CallFields, ToolCall

MAX_IMPORTED_ARGUMENTS_CHARS: Final = 200_000


class StoredToolCall(TypedDict):
    """`reply_id` is unique over all turns of a chat; None stands alone."""

    id: str
    name: str
    arguments: str
    reply_id: str | None


def store_call(call: ToolCall, reply_id: str | None) -> StoredToolCall:
    return {"id": call.id, "name": call.name, "arguments": call.arguments, "reply_id": reply_id}


def store_answered_call(call: ToolCall, reply_id: str | None) -> StoredToolCall:
    """Return what a result says of its call: the arguments stand in the call's own message."""
    return {"id": call.id, "name": call.name, "arguments": "", "reply_id": reply_id}


def read_call(stored: Mapping[str, Any], provider_fields: CallFields | None = None) -> ToolCall:
    """Return a stored call. Imported chats may lack `reply_id`."""
    return ToolCall(
        stored["id"],
        stored["name"],
        stored["arguments"],
        stored.get("reply_id"),
        provider_fields or {},
    )


def are_arguments_too_long(call: Any) -> bool:
    """Return whether the call of an export has longer arguments than are taken in."""
    arguments = call.get("arguments") if isinstance(call, Mapping) else None
    return isinstance(arguments, str) and len(arguments) > MAX_IMPORTED_ARGUMENTS_CHARS
