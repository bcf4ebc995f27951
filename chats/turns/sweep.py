"""Find turns that nobody runs: those of lost workers, and those whose message was lost.

Every statement here is safe to run in several processes at once; one of them sweeps at a time.
"""

from datetime import timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from amber.lib.database.lease import is_older
from amber.lib.errors import CODES
from amber.lib.workers.guard import guard_row
from chats.models import Turn, TurnStatus
from chats.turns.account import settle_lost
from chats.turns.endings import TurnEnding, end_outside, lock_turn

logger = structlog.get_logger(__name__)

_SWEEP_LOCK = 0x616D6265
"""Key of the advisory lock: "ambe" in ASCII."""

_BATCH = 200


def sweep_turns() -> list[UUID]:
    """Give back the turns of lost workers; return the ids to enqueue. At most _BATCH a call."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_SWEEP_LOCK])
            if not cursor.fetchone()[0]:
                return []
        Turn.objects.shorten_leases(settings.AMBER_LEASE_SECONDS)
        expired = list(Turn.objects.expired().values_list("pk", "chat_id")[:_BATCH])
    queued = []
    for pk, chat_id in expired:
        with guard_row("sweep_turns", turn_id=str(pk)):
            if _give_back(pk, chat_id):
                queued.append(pk)
    return queued


def overdue_turns(age_seconds: float) -> list[UUID]:
    """Return turns that have been queued for so long that their message must be lost."""
    old = is_older("updated_at", timedelta(seconds=age_seconds))
    queued = Turn.objects.filter(old, status=TurnStatus.QUEUED)
    return list(queued.order_by("created_at").values_list("pk", flat=True)[:_BATCH])


def _give_back(turn_id: UUID, chat_id: UUID | None) -> bool:
    """Queue one expired turn again, or end it after too many attempts.

    Return whether it is queued.
    """
    with transaction.atomic():
        # Looked for again under the lock: its worker may have renewed the lease meanwhile.
        turn, chat = lock_turn(turn_id, chat_id, Turn.objects.expired())
        if turn is None:
            return False
        settle_lost(turn)
        if turn.cancel_requested_at is not None:
            return not end_outside(turn, chat, TurnEnding(TurnStatus.CANCELLED))
        if turn.attempt >= settings.AMBER_MAX_ATTEMPTS:
            error = {"code": "worker_lost", "message": CODES["worker_lost"][1], "retryable": True}
            shown = bool(turn.partial_text.strip())
            status = TurnStatus.INCOMPLETE if shown else TurnStatus.FAILED
            return not end_outside(turn, chat, TurnEnding(status, error=error))
        logger.warning("turn_lost_its_worker", turn_id=str(turn.pk), attempt=turn.attempt)
        Turn.objects.filter(pk=turn.pk).update(
            status=TurnStatus.QUEUED,
            worker="",
            lease_until=None,
            usage=turn.usage,
            updated_at=Now(),
        )
        return True
