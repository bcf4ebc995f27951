"""List the turns that this process runs, and stop one from outside by cancelling its task.

The runner decides what becomes of the turn then.
"""

import asyncio
from typing import Any, Final

from amber.lib.workers.leases import Run, Runs
from amber.lib.workers.thread_bridge import worker_loop
from chats.models import Turn

running_turns: Final = Runs(Turn)


class TaskRun(Run):
    """A run that is one task on the worker's loop; its own methods are called there."""

    def __init__(self) -> None:
        super().__init__()
        self._task: asyncio.Task[Any] | None = None

    def set_task(self, task: "asyncio.Task[Any]") -> None:
        self._task = task
        # It was stopped before it had a task: `interrupt` found nothing to cancel.
        if self.stopped_as is not None:
            self._cancel()

    def let_finish(self) -> None:
        """Ignore further stops: what comes now is short, and must not be cut off."""
        self._task = None

    def interrupt(self) -> None:
        worker_loop().call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        """Cancel the task, once: a second time would cut off what it does about the first."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
