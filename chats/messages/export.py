"""Export a chat: everything it holds, as JSON (docs/importing.md). `chats.importing` takes it in."""

from collections.abc import Sequence
from typing import cast

from chats.messages import transcript
from chats.messages.hidden_fields import seal_fields
from chats.messages.wire import (
    ExportedMessageWire,
    ExportWire,
    chat_wire,
    hides_reasoning,
    message_wire,
)
from chats.models import Chat, ChatMessage
from engine.provider_fields import StoredFields


def export_chat(chat: Chat) -> ExportWire:
    """Return `{"chat", "messages"}` with all branches, parents before children."""
    rows = list(
        ChatMessage.objects.filter(chat=chat)
        .defer("search")
        .order_by("position", "created_at", "pk")
    )
    transcript.attach_related(rows)
    return {"chat": chat_wire(chat), "messages": export_messages(rows)}


def export_messages(messages: Sequence[ChatMessage]) -> list[ExportedMessageWire]:
    """Return the wire form of messages with `provider_fields`, which models need to continue an import.

    Siblings are not named: of a message that was asked again a thousand times each would name all.
    """
    judged = transcript.feedback_on(messages)
    wires = [message_wire(message, feedback=judged.get(message.pk)) for message in messages]
    exported = cast("list[ExportedMessageWire]", wires)
    for wire, message in zip(exported, messages, strict=True):
        fields: StoredFields | None = message.provider_fields
        if fields and hides_reasoning(message):
            fields = seal_fields(fields, message.organization_id)
        if fields:
            wire["provider_fields"] = dict(fields)
    return exported
