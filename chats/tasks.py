"""Run turns and seal chats for Celery: a message (`chats.queue`) names a row, which has the state.
A turn's message is a doorbell: the turn that is next is run, not the one it names.

Only workers import this module.
"""

from uuid import UUID

from celery import shared_task

from amber.lib.workers.worker import this_worker
from chats.digest import blocks
from chats.models import TurnStatus
from chats.queue import enqueue_turn

OVER = {*TurnStatus} - {TurnStatus.QUEUED, TurnStatus.RUNNING}
"""States in which a turn has left its worker's hands."""


@shared_task(name="chats.run_turn")
def run_turn(turn_id: str) -> None:
    """Run the turn that is next, and as long as turns wait for one to end, those after it."""
    # With all that answers: 6 MB, in workers that have turns to run.
    from chats.running import runner
    from chats.turns import claims

    worker = this_worker()
    if worker.is_draining:
        enqueue_turn(UUID(turn_id))
        return
    status: TurnStatus | None = runner.run_next(worker=worker.name)
    while status in OVER and claims.are_some_waiting() and not worker.is_draining:
        status = runner.run_next(worker=worker.name)
    if status == TurnStatus.QUEUED:
        enqueue_turn(UUID(turn_id))


@shared_task(name="chats.seal_chat")
def seal_chat(chat_id: str) -> None:
    """Seal the chat's old messages. Doing it twice does no harm."""
    blocks.seal_for_owner(UUID(chat_id))
