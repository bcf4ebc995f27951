"""Expire chats and stateless turns: those whose time is up, and those an organization keeps no
longer (`Organization.retention_days` since the last activity).

They are hidden at once and deleted in batches (`operations.privacy.chat_deletion`). Memories stay:
they are the person's own, and have their own list. Each function works for a while, may be run
twice, and goes on the next time.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.utils import timezone

from accounts.models import Organization
from amber.lib.database.batches import delete_in_batches
from amber.lib.workers.time_slice import TimeSlice
from chats.models import Chat, Turn, TurnQuerySet
from engine.events import LIVE_STATUSES
from operations.privacy.chat_deletion import remove_chat

CHATS_AT_ONCE: Final = 200
TURNS_AT_ONCE: Final = 500


def expire_old_chats() -> None:
    """Expire chats, and delete stateless turns, that are older than their organization keeps
    them."""
    limited = Organization.objects.filter(retention_days__isnull=False)
    keeping = limited.values_list("pk", "retention_days")
    for organization_id, days in keeping:
        if days is None:
            continue
        oldest_kept = timezone.now() - timedelta(days=days)
        while _expire_some(organization_id, oldest_kept):
            pass
        delete_in_batches(_stateless(organization_id, oldest_kept), at_most=TURNS_AT_ONCE)


def remove_expired_chats() -> None:
    """Delete expired chats, the longest expired first."""
    time_slice = TimeSlice()
    while _remove_some(time_slice):
        pass


def _remove_some(time_slice: TimeSlice) -> bool:
    """Delete one batch.

    Return whether there may be more to do: in time, and held by nobody else.
    """
    expired = Chat.objects.past_expiry().order_by("expired_at").values_list("pk", flat=True)
    is_any_removed = False
    for chat_id in list(expired[:CHATS_AT_ONCE]):
        if time_slice.is_over():
            return False
        is_any_removed |= remove_chat(chat_id)
    return is_any_removed


def _expire_some(organization_id: UUID, oldest_kept: datetime) -> int:
    """Expire one batch; a chat that somebody continued meanwhile stays."""
    old = Chat.objects.before_expiry().filter(
        organization_id=organization_id, updated_at__lt=oldest_kept
    )
    ids = list(old.order_by("updated_at").values_list("pk", flat=True)[:CHATS_AT_ONCE])
    return old.filter(pk__in=ids).update(expired_at=timezone.now())


def _stateless(organization_id: UUID, oldest_kept: datetime) -> TurnQuerySet:
    turns: TurnQuerySet = Turn.objects.filter(
        organization_id=organization_id, chat__isnull=True, created_at__lt=oldest_kept
    )
    return turns.exclude(status__in=LIVE_STATUSES)
