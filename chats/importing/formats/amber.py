"""Read Amber's own exports: `{"chat", "messages"}`, of which a message needs role and content."""

from typing import Any

from chats.api.serializers import ImportInput
from chats.importing.converted import ConvertedChat, NotTaken, dict_of, text_of
from chats.messages.roles import CALL_ROLES
from chats.messages.tool_calls import are_arguments_too_long


def is_amber(source: Any) -> bool:
    """Return whether it may be Amber's. What nobody else claims is read as such, and refused by
    field."""
    return isinstance(source, dict)


def convert_amber(source: dict[str, Any]) -> ConvertedChat:
    """Convert a chat. Raises ValidationError, which names the fields."""
    shape = ImportInput(data=source)
    shape.is_valid(raise_exception=True)
    given = shape.validated_data
    chat = given.get("chat", {})
    not_taken = NotTaken()
    not_taken.add_long_arguments(
        sum(
            are_arguments_too_long(each.get("tool_call"))
            for each in given["messages"]
            if each["role"] in CALL_ROLES
        )
    )
    is_named = "assistant_id" in given
    return ConvertedChat(
        chat=chat,
        messages=given["messages"],
        source_id=text_of(dict_of(source.get("chat")).get("id")),
        active_leaf_id=chat.get("active_leaf_id"),
        assistant_id=given["assistant_id"] if is_named else chat.get("assistant_id"),
        is_assistant_named=is_named,
        not_taken=not_taken,
    )
