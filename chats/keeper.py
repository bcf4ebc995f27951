"""One daemon thread per worker: renews leases, sweeps, rings again, shows that it lives.

What there is to do depends on the queue that the worker consumes (`Duty`): turns (`chats.turn_duty`)
or documents (`chats.document_duty`). Nothing here runs turns or reads documents; nothing here may end
the process.
"""

import threading
import time
from typing import Protocol

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections
from redis.exceptions import RedisError

from amber.lib.worker import Worker
from chats.heartbeat import beat

logger = structlog.get_logger(__name__)


class Duty(Protocol):
    """What a worker's keeper looks after."""

    def begin(self) -> None:
        """The worker consumes now."""

    def renew(self) -> None:
        """Keep what this process holds, stop what it has lost or shall cancel."""

    def sweep(self) -> None:
        """What dead workers left, and what no ring came through for."""

    def drain(self) -> None:
        """Nothing more is claimed: give back what runs. In a thread of its own; may take a while."""


class Keeper:
    """Starts with the worker (`start`), drains it on shutdown (`drain`)."""

    def __init__(self, worker: Worker, *, queue: str, duty: Duty) -> None:
        self._worker = worker
        self._queue = queue
        self._duty = duty

    def start(self) -> None:
        threading.Thread(target=self._keep, name="keeper", daemon=True).start()
        self._duty.begin()

    def drain(self) -> None:
        """No more claims. Returns at once."""
        self._worker.is_draining = True
        threading.Thread(target=self._duty.drain, name="drain", daemon=True).start()

    def _keep(self) -> None:
        while True:
            try:
                self._tick()
            except (DatabaseError, InterfaceError, RedisError, OSError) as exc:
                logger.warning("keeper_hindered", reason=type(exc).__name__)
            finally:
                connections.close_all()
            time.sleep(settings.AMBER_SWEEP_SECONDS)

    def _tick(self) -> None:
        self._duty.renew()
        beat(self._worker, self._queue)
        if not self._worker.is_draining:
            self._duty.sweep()
