"""List the turns that this process runs, and stop them from outside.

A turn is stopped by cancelling its task, for one of three reasons; the first one counts. The runner
decides what becomes of the turn then.
"""

import asyncio
import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from amber.lib.workers.thread_bridge import worker_loop


class StopReason(enum.Enum):
    """Why a running turn is stopped from outside."""

    CANCELLED = "cancelled"
    RELEASED = "released"
    FENCED = "fenced"


class Stoppable:
    """Something that runs as one task. Used on the worker's loop only, except for making it."""

    def __init__(self) -> None:
        self.stopped_as: StopReason | None = None
        self._task: asyncio.Task[Any] | None = None

    def set_task(self, task: "asyncio.Task[Any]") -> None:
        self._task = task
        if self.stopped_as is not None:
            task.cancel()

    def stop(self, reason: StopReason) -> None:
        """Cancel the task, now or once it begins. The first reason counts."""
        if self.stopped_as is None:
            self.stopped_as = reason
            if self._task is not None:
                self._task.cancel()

    def let_finish(self) -> None:
        """Ignore further stops: what comes now is short, and must not be cut off."""
        self._task = None


_running: dict[UUID, Stoppable] = {}


def running_ids() -> list[UUID]:
    """Return the ids of the turns that this process runs."""
    return list(_running)


def stop(turn_id: UUID, reason: StopReason) -> None:
    """Stop a turn of this process; nothing happens when it does not run here."""
    run = _running.get(turn_id)
    if run is not None:
        worker_loop().call_soon_threadsafe(run.stop, reason)


@contextmanager
def list_run(turn_id: UUID, run: Stoppable) -> Iterator[None]:
    """List the run inside the context, so that it can be stopped."""
    _running[turn_id] = run
    try:
        yield
    finally:
        if _running.get(turn_id) is run:  # it may have been lost, and claimed here again
            del _running[turn_id]
