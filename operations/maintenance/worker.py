"""Maintain a worker in two daemon threads: one renews leases, one sends heartbeats and sweeps.

What there is to do depends on the queue that the worker consumes (`QueueMaintenance`): turns
(`operations.maintenance.turns`) or documents (`operations.maintenance.documents`). Nothing here
runs turns or reads documents; nothing here may end the process, and nothing that a part of it
raises ends its thread (`amber.lib.workers.guard`).
"""

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from django.conf import settings
from django.db import connections

from amber.lib.database.tenant import across_tenants
from amber.lib.workers.guard import guard
from amber.lib.workers.leases import start_renewing
from amber.lib.workers.worker import Worker
from operations.maintenance.heartbeats import beat


class QueueMaintenance(Protocol):
    """What one queue's workers have to maintain."""

    def begin(self) -> None:
        """Get ready: the worker consumes its queue from now on."""

    @property
    def sweeps(self) -> Mapping[str, Callable[[], None]]:
        """Return, by name, what finds rows that dead workers left or whose message was lost.

        None of them may rely on another having succeeded.
        """

    def drain(self) -> None:
        """Release what runs, now that nothing more is claimed.

        In a thread of its own; may take a while.
        """


class WorkerMaintenance:
    """Maintains one worker from its start (`start`) to its shutdown (`drain`)."""

    def __init__(self, worker: Worker, *, queue: str, queue_maintenance: QueueMaintenance) -> None:
        self._worker = worker
        self._queue = queue
        self._queue_maintenance = queue_maintenance

    def start(self, is_over: threading.Event | None = None) -> list[threading.Thread]:
        """Start the threads and return them; they end with the process, or once `is_over` is
        set."""
        is_over = is_over or threading.Event()
        sweeping = threading.Thread(target=self._sweep, args=(is_over,), name="sweep", daemon=True)
        sweeping.start()
        # Leases have a thread of their own: a slow sweep must not let them run out.
        threads = [start_renewing(self._worker.name, is_over), sweeping]
        self._queue_maintenance.begin()
        return threads

    def drain(self) -> None:
        """Stop claiming and begin to release what runs. Returns at once."""
        self._worker.is_draining = True
        threading.Thread(target=self._queue_maintenance.drain, name="drain", daemon=True).start()

    def _sweep(self, is_over: threading.Event) -> None:
        with across_tenants():
            while not is_over.is_set():
                self._tick()
                is_over.wait(settings.AMBER_SWEEP_SECONDS)

    def _tick(self) -> None:
        """Do each part by itself: what one raises is logged and counted, and the others are still
        done."""
        with guard("beat"):
            beat(self._worker, self._queue)
        if not self._worker.is_draining:
            for part, sweep in self._queue_maintenance.sweeps.items():
                with guard(part):
                    sweep()
        with guard("release_connections"):
            connections.close_all()
