"""Export and import chats: everything a chat holds, as JSON (docs/privacy.md)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from accounts.tenancy.idempotency import settle
from amber.lib.errors import Invalid
from assistants.models import Assistant
from chats.messages import transcript
from chats.messages.imported_tree import build_tree
from chats.messages.wire import ExportWire, chat_wire
from chats.models import Chat, ChatMessage
from chats.queue import enqueue_sealing

_BATCH = 500


def export_chat(chat: Chat) -> ExportWire:
    """Return `{"chat", "messages"}` with all branches, parents before children."""
    rows = list(
        ChatMessage.objects.filter(chat=chat)
        .defer("search")
        .order_by("position", "created_at", "pk")
    )
    transcript.attach_related(rows)
    return {"chat": chat_wire(chat), "messages": transcript.export_messages(rows)}


@transaction.atomic(durable=True)
def import_chat(
    principal: Principal,
    *,
    chat: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    assistant: Assistant | None = None,
    claim: IdempotencyRecord | None = None,
) -> Chat:
    """Create a chat of the principal's; a message without `parent_id` follows the one before it.

    `assistant` becomes the chat's. Messages keep the assistants that the principal sees; files are
    not imported, since they may be somebody else's. Old messages are sealed at once, since the
    first question may need them. Raises Invalid.
    """
    made = Chat.objects.create(
        organization_id=principal.organization_id,
        user=principal.user,
        guest_id=principal.guest_id,
        owner=transcript.owner_of(principal),
        api_key=principal.key,
        assistant=assistant,
        **{name: value for name, value in chat.items() if not name.endswith("_id")},
    )
    rows = build_tree(made, messages, assistant_ids=_seen_assistants(principal, messages))
    ChatMessage.objects.bulk_create(rows.values(), batch_size=_BATCH)
    _keep_dates(rows.values(), messages)
    made.active_leaf = _leaf(rows, chat.get("active_leaf_id"))
    made.save(update_fields=["active_leaf", "updated_at"])
    settle(claim, status=201, answer=chat_wire(made))
    transaction.on_commit(partial(enqueue_sealing, made.pk))
    return made


def _seen_assistants(
    principal: Principal, messages: Sequence[Mapping[str, Any]]
) -> Collection[UUID]:
    """Return the assistants that the messages name and the principal sees. One query at most."""
    named = {given["assistant_id"] for given in messages if given.get("assistant_id")}
    if not named:
        return ()
    rows = Assistant.objects.visible_to(principal).filter(pk__in=named)
    return set(rows.values_list("pk", flat=True))


def _keep_dates(rows: Iterable[ChatMessage], messages: Sequence[Mapping[str, Any]]) -> None:
    """Replace the dates at which the rows were written by those of the export."""
    dated = []
    for row, given in zip(rows, messages, strict=True):
        if "created_at" in given:
            row.created_at = given["created_at"]
            dated.append(row)
    ChatMessage.objects.bulk_update(dated, ["created_at"], batch_size=_BATCH)


def _leaf(rows: Mapping[str, ChatMessage], wanted: str | None) -> ChatMessage | None:
    """Return the leaf that the export names, else the last message. Raises Invalid."""
    if wanted is not None and wanted not in rows:
        raise Invalid(fields={"chat.active_leaf_id": ["No message of the import has this id."]})
    if wanted is not None:
        return rows[wanted]
    return list(rows.values())[-1] if rows else None
