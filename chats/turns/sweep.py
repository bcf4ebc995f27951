"""Find turns that nobody runs: those of lost workers, and those whose message was lost."""

from datetime import timedelta
from uuid import UUID

import structlog

from amber.lib.database.lease import is_older
from amber.lib.errors import CODES
from amber.lib.workers.leases import sweep_expired
from chats.models import Turn
from chats.turns.account import settle_lost
from chats.turns.attempt_spans import record_lost
from chats.turns.endings import TurnEnding, end_outside, lock_turn
from engine.events import TurnStatus

logger = structlog.get_logger(__name__)

_BATCH = 50
"""A message brings whichever turn is next: a few are enough to set a worker to work."""


def sweep_turns() -> list[UUID]:
    """Give back the turns of lost workers; return the ids to enqueue."""
    return sweep_expired("sweep_turns", Turn, _give_back)


def overdue_turns(age_seconds: float) -> list[UUID]:
    """Return turns that have been queued for so long that their message must be lost."""
    # Not by when it was made: an approval or a release queues an old turn again.
    old = is_older("updated_at", timedelta(seconds=age_seconds))
    queued = Turn.objects.filter(old, status=TurnStatus.QUEUED)
    return list(queued.order_by("created_at").values_list("pk", flat=True)[:_BATCH])


def _give_back(turn_id: UUID) -> bool:
    """Queue one expired turn again, or end it after too many attempts.

    Return whether it is queued.
    """
    # Read by itself, since the chat must be locked before its turn.
    chat_id = Turn.objects.filter(pk=turn_id).values_list("chat_id", flat=True).first()
    turn, chat = lock_turn(turn_id, chat_id, Turn.objects.with_expired_lease())
    if turn is None:
        return False
    record_lost(turn)
    # Before the turn ends, which takes the text from its row that this estimate counts.
    settle_lost(turn)
    if turn.cancel_requested_at is not None:
        end_outside(turn, chat, TurnEnding(TurnStatus.CANCELLED))
        return False
    if turn.is_last_attempt:
        error = {"code": "worker_lost", "message": CODES["worker_lost"][1], "retryable": True}
        shown = bool(turn.partial_text.strip())
        status = TurnStatus.INCOMPLETE if shown else TurnStatus.FAILED
        end_outside(turn, chat, TurnEnding(status, error=error))
        return False
    logger.warning("turn_lost_its_worker", turn_id=str(turn.pk), attempt=turn.attempt)
    Turn.objects.give_back(turn, usage=turn.usage)
    return True
