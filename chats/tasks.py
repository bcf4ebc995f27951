"""Celery's doorbells for turns and chores: a ring names a row, the row knows what to do."""

from uuid import UUID

import structlog
from celery import shared_task
from kombu.exceptions import OperationalError

from amber.lib.worker import this_worker
from chats import blocks, chores, runner
from chats.models import TurnStatus

logger = structlog.get_logger(__name__)

_PUBLISH_ONCE = {"max_retries": 1, "interval_start": 0, "interval_max": 0.2}


@shared_task(name="chats.run_turn")
def run_turn(turn_id: str) -> None:
    """Ringing twice is a no-op: the turn is claimed by compare-and-set."""
    worker = this_worker()
    if worker.is_draining:
        ring_turn(UUID(turn_id))
        return
    if runner.run(UUID(turn_id), worker=worker.name) == TurnStatus.QUEUED:
        ring_turn(UUID(turn_id))


@shared_task(name="chats.run_chore")
def run_chore(name: str) -> None:
    chores.run(name)


@shared_task(name="chats.seal_chat")
def seal_chat(chat_id: str) -> None:
    """Doing it twice does no harm; a lost ring is made good after the chat's next turn."""
    blocks.seal(UUID(chat_id))


def ring_turn(turn_id: UUID) -> None:
    """Losing a ring is normal: the sweep rings again for turns that stay queued."""
    try:
        run_turn.apply_async((str(turn_id),), retry_policy=_PUBLISH_ONCE)
    except OperationalError as exc:
        logger.warning("ring_lost", turn_id=str(turn_id), reason=type(exc).__name__)


def ring_chore(name: str) -> None:
    try:
        run_chore.apply_async((name,), retry_policy=_PUBLISH_ONCE)
    except OperationalError as exc:
        logger.warning("ring_lost", chore=name, reason=type(exc).__name__)


def ring_sealing(chat_id: UUID) -> None:
    try:
        seal_chat.apply_async((str(chat_id),), retry_policy=_PUBLISH_ONCE)
    except OperationalError as exc:
        logger.warning("ring_lost", chat_id=str(chat_id), reason=type(exc).__name__)
