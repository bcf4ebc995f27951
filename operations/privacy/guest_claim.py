"""Give a guest's chats, files and memories to the user that the guest has become.

Only rows of one organization are moved, and only those of a guest who came without anybody's key.
What has expired stays gone, though its rows may still be there. The ledger stays as it is: it says
who asked at the time.
"""

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from accounts.models import User
from chats.events.changes import tell_of_chats
from chats.messages.search import move_messages, person_word
from chats.models import Chat, ChatOwner, Turn
from libraries.models import File
from memory.facts.handover import hand_over
from memory.owner import Owner


@dataclass(frozen=True, slots=True)
class ClaimedRows:
    """The numbers of rows that the user took over."""

    chats: int = 0
    files: int = 0
    memories: int = 0


@transaction.atomic(durable=True)
def claim_guest(user: User, *, organization_id: UUID, guest_id: str) -> ClaimedRows:
    """Give the guest's rows to the user; they no longer expire by themselves.

    A running turn is run again as the user's: its worker acts for the guest, who may no longer see it.
    Calling this again takes over what has come since.
    """
    of_guest = {"organization_id": organization_id, "guest_id": guest_id, "user__isnull": True}
    chats = Chat.objects.before_expiry().filter(**of_guest).select_for_update(no_key=True)
    ids = list(chats.order_by("pk").values_list("pk", flat=True))
    taken = {"user": user, "guest_id": None}
    turns = Turn.objects.filter(chat_id__in=ids)
    turns.take_away()
    turns.update(**taken)
    Chat.objects.filter(pk__in=ids).update(**taken, owner=ChatOwner.USER, expired_at=None)
    word_before = person_word(organization_id, None, guest_id)
    move_messages(ids, word_before, person_word(organization_id, user.pk, None))
    files = File.objects.before_expiry().filter(**of_guest).update(**taken, expired_at=None)
    memories = hand_over(Owner(organization_id, None, guest_id), Owner(organization_id, user.pk))
    tell_of_chats(organization_id, user.pk)
    return ClaimedRows(len(ids), files, memories)
