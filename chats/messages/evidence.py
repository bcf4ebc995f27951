"""Take messages that are about to be deleted out of the evidence of memories."""

from uuid import UUID

from django.db.models import QuerySet

from chats.models import Chat, ChatMessage
from memory.facts.evidence import evidence_of, withdraw_evidence
from memory.owner import Owner


def withdraw_messages(chat: Chat, going: QuerySet[ChatMessage]) -> None:
    """Withdraw these messages, in the caller's transaction, before they are deleted.

    The cost grows with the person's memories, not with the number of messages.
    """
    owner = Owner.asking(chat.organization_id, chat.user_id, chat.guest_id)
    held = evidence_of(owner)
    if held:
        ids: list[UUID] = list(going.filter(pk__in=held).values_list("pk", flat=True))
        withdraw_evidence(owner, ids)
