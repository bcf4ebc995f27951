"""Run turns and seal chats for Celery. A message (`chats.queue`) names a row; the row has the state.

Only workers import this module. Each task accepts more arguments than it knows: a newer release may send them.
"""

import time
from typing import Final
from uuid import UUID

import structlog
from celery import shared_task
from django.db import InterfaceError, OperationalError

from amber.lib.workers.worker import this_worker
from chats.digest import blocks
from chats.queue import enqueue_turn
from engine.events import TurnStatus

logger = structlog.get_logger(__name__)

AWAY_SECONDS: Final = 0.5
"""The pause before another try to claim a turn while Postgres is away."""

OVER = {*TurnStatus} - {TurnStatus.QUEUED, TurnStatus.RUNNING}
"""States in which no worker runs the turn any more."""


@shared_task(name="chats.run_turn")
def run_turn(turn_id: str, *_: str) -> None:
    """Run the turn that is next, which need not be the named one; while turns wait for another to end, go on."""
    # Imported late, with all that answers a turn: 6 MB that only workers with turns need.
    from chats.running import runner
    from chats.turns import claims

    worker = this_worker()
    if worker.is_draining:
        enqueue_turn(UUID(turn_id))
        return
    try:
        status: TurnStatus | None = runner.run_next(worker=worker.name)
        while status in OVER and claims.are_some_waiting() and not worker.is_draining:
            status = runner.run_next(worker=worker.name)
    except (OperationalError, InterfaceError) as exc:
        # Raised by the claim, never by a turn that runs. The message must not be lost with the attempt.
        logger.warning("no_turn_claimed", reason=type(exc).__name__)
        time.sleep(AWAY_SECONDS)
        status = TurnStatus.QUEUED
    if status == TurnStatus.QUEUED:
        enqueue_turn(UUID(turn_id))


@shared_task(name="chats.seal_chat")
def seal_chat(chat_id: str, *_: str) -> None:
    """Seal the chat's old messages; doing it twice does no harm."""
    blocks.seal_for_owner(UUID(chat_id))
