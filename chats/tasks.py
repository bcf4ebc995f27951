"""Celery's tasks for turns and sealing: a ring (`chats.queue`) names a row, the row knows what to do.

Read by workers only.
"""

from uuid import UUID

from celery import shared_task

from amber.lib.workers.worker import this_worker
from chats.digest import blocks
from chats.models import TurnStatus
from chats.queue import enqueue_turn


@shared_task(name="chats.run_turn")
def run_turn(turn_id: str) -> None:
    """Ringing twice is a no-op: the turn is claimed by compare-and-set."""
    from chats.running import (
        runner,  # with all that answers: 6 MB, in workers that have turns to run
    )

    worker = this_worker()
    if worker.is_draining:
        enqueue_turn(UUID(turn_id))
        return
    if runner.run(UUID(turn_id), worker=worker.name) == TurnStatus.QUEUED:
        enqueue_turn(UUID(turn_id))


@shared_task(name="chats.seal_chat")
def seal_chat(chat_id: str) -> None:
    """Doing it twice does no harm; a lost ring is made good after the chat's next turn."""
    blocks.seal(UUID(chat_id))
