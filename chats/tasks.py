"""Run turns and seal chats for Celery: a message (`chats.queue`) names a row, which has the state.
Of turns the one that is next is run, which need not be the one that the message names.

Only workers import this module. Each task takes more arguments than it knows: a newer release may send some.
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
"""States in which a turn has left its worker's hands."""


@shared_task(name="chats.run_turn")
def run_turn(turn_id: str, *_: str) -> None:
    """Run the turn that is next, and as long as turns wait for one to end, those after it."""
    # With all that answers: 6 MB, in workers that have turns to run.
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
        # Not from a turn that runs: none could be claimed. The message must not be lost with the attempt.
        logger.warning("no_turn_claimed", reason=type(exc).__name__)
        time.sleep(AWAY_SECONDS)
        status = TurnStatus.QUEUED
    if status == TurnStatus.QUEUED:
        enqueue_turn(UUID(turn_id))


@shared_task(name="chats.seal_chat")
def seal_chat(chat_id: str, *_: str) -> None:
    """Seal the chat's old messages. Doing it twice does no harm."""
    blocks.seal_for_owner(UUID(chat_id))
