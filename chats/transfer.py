"""Chats out of Amber and back: everything a chat holds, as JSON (design 12)."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from accounts.idempotency import settle
from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from amber.lib.errors import Invalid
from chats import transcript
from chats.models import Chat, ChatMessage
from chats.wire import chat_wire


def export_chat(chat: Chat) -> dict[str, Any]:
    """`{"chat", "messages"}`, parents before children, all branches."""
    rows = list(
        ChatMessage.objects.filter(chat=chat)
        .defer("search")
        .order_by("position", "created_at", "pk")
    )
    transcript.attach_related(rows)
    return {"chat": chat_wire(chat), "messages": transcript.shown(rows)}


@transaction.atomic(durable=True)
def import_chat(
    principal: Principal,
    *,
    chat: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    claim: IdempotencyRecord | None = None,
) -> Chat:
    """A new chat of the principal's; a message without `parent_id` follows the one before it.

    Assistants and files are not taken along: they may be somebody else's. Raises Invalid.
    """
    made = Chat.objects.create(
        organization_id=principal.organization_id,
        user=principal.user,
        guest_id=principal.guest_id,
        owner=transcript.owner_of(principal),
        name=chat.get("name", ""),
        prompt=chat.get("prompt"),
    )
    rows = transcript.build_tree(made, messages)
    ChatMessage.objects.bulk_create(rows.values(), batch_size=500)
    made.active_leaf = _leaf(rows, chat.get("active_leaf_id"))
    made.save(update_fields=["active_leaf", "updated_at"])
    settle(claim, status=201, answer=chat_wire(made))
    return made


def _leaf(rows: Mapping[str, ChatMessage], wanted: str | None) -> ChatMessage | None:
    """The leaf the export names, else the last message."""
    if wanted is not None and wanted not in rows:
        raise Invalid(fields={"chat.active_leaf_id": ["No message has this id."]})
    if wanted is not None:
        return rows[wanted]
    return list(rows.values())[-1] if rows else None
