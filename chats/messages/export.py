"""Export a chat: everything it holds, as JSON (docs/importing.md). `chats.importing` takes it in."""

from chats.messages import transcript
from chats.messages.wire import ExportWire, chat_wire
from chats.models import Chat, ChatMessage


def export_chat(chat: Chat) -> ExportWire:
    """Return `{"chat", "messages"}` with all branches, parents before children."""
    rows = list(
        ChatMessage.objects.filter(chat=chat)
        .defer("search")
        .order_by("position", "created_at", "pk")
    )
    transcript.attach_related(rows)
    return {"chat": chat_wire(chat), "messages": transcript.export_messages(rows)}
