"""Convert tool calls to the form in which messages keep them, and back.

`ChatMessage.tool_call`, the wire form of messages and `Turn.input` have this form. Pure.
"""

from collections.abc import Mapping
from typing import Any, TypedDict

from engine.tool_calls import CallFields, ToolCall


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
