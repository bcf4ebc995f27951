"""Run turns and seal chats for Celery: a message (`chats.queue`) names a row, which has the state.

Only workers import this module.
"""

from uuid import UUID

from celery import shared_task

from amber.lib.workers.worker import this_worker
from chats.digest import blocks
from chats.models import TurnStatus
from chats.queue import enqueue_turn


@shared_task(name="chats.run_turn")
def run_turn(turn_id: str) -> None:
    """Run the turn. A second message does nothing: the turn is claimed by compare-and-set."""
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
    """Seal the chat's old messages. Doing it twice does no harm."""
    blocks.seal_for_owner(UUID(chat_id))
