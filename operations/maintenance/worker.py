"""Two daemon threads per worker: one renews leases, one shows that the worker lives, sweeps, rings again.

What there is to do depends on the queue that the worker consumes (`QueueMaintenance`): turns (`operations.maintenance.turns`)
or documents (`operations.maintenance.documents`). Nothing here runs turns or reads documents; nothing here may end
the process, and nothing that a part of it raises ends its thread (`amber.lib.workers.guard`).
"""

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from django.conf import settings
from django.db import connections

from amber.lib.workers.guard import guard
from amber.lib.workers.renewal import start_renewing
from amber.lib.workers.worker import Worker
from operations.maintenance.heartbeats import beat


class QueueMaintenance(Protocol):
    """What a worker's keeper looks after."""

    def begin(self) -> None:
        """The worker consumes now."""

    def renew(self) -> None:
        """Keep what this process holds, stop what it has lost or shall cancel. In a thread that
        does nothing else."""

    @property
    def sweeps(self) -> Mapping[str, Callable[[], None]]:
        """What dead workers left, and what no ring came through for, by the part's name. None of
        them may rely on another having succeeded."""

    def drain(self) -> None:
        """Nothing more is claimed: give back what runs. In a thread of its own; may take a while."""


class WorkerMaintenance:
    """Starts with the worker (`start`), drains it on shutdown (`drain`)."""

    def __init__(self, worker: Worker, *, queue: str, queue_maintenance: QueueMaintenance) -> None:
        self._worker = worker
        self._queue = queue
        self._queue_maintenance = queue_maintenance

    def start(self, is_over: threading.Event | None = None) -> list[threading.Thread]:
        """The threads, which live as long as the process, or until somebody sets `is_over`."""
        is_over = is_over or threading.Event()
        keeping = threading.Thread(target=self._keep, args=(is_over,), name="keeper", daemon=True)
        keeping.start()
        threads = [start_renewing(self._queue_maintenance.renew, is_over), keeping]
        self._queue_maintenance.begin()
        return threads

    def drain(self) -> None:
        """No more claims. Returns at once."""
        self._worker.is_draining = True
        threading.Thread(target=self._queue_maintenance.drain, name="drain", daemon=True).start()

    def _keep(self, is_over: threading.Event) -> None:
        while not is_over.is_set():
            self._tick()
            is_over.wait(settings.AMBER_SWEEP_SECONDS)

    def _tick(self) -> None:
        """Each part by itself: what one raises is logged and counted, the others are done."""
        with guard("beat"):
            beat(self._worker, self._queue)
        if not self._worker.is_draining:
            for part, sweep in self._queue_maintenance.sweeps.items():
                with guard(part):
                    sweep()
        with guard("release_connections"):
            connections.close_all()
