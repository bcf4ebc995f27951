"""One daemon thread per worker: renews leases, sweeps, rings again, shows that it lives.

Every AMBER_SWEEP_SECONDS one statement renews all leases of this process and tells which turns, or
documents, it has lost or shall cancel. In chat workers a second, small listener hears cancel
requests at once. Nothing here runs turns or reads documents; nothing here may end the process.
"""

import asyncio
import threading
import time
from datetime import timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections
from django.db.models.functions import Now
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from amber.lib.bridge import worker_loop
from amber.lib.worker import Worker
from chats import stopping, sweep, tasks
from chats.chores import due_chores
from chats.models import Turn, TurnStatus, WorkerHeartbeat
from chats.stopping import Stop
from chats.stream import control_channel
from engine import openai_model
from libraries import claims, holds, importing, switching
from libraries.sweep import sweep_documents, sweep_repositories
from libraries.tasks import ring_imports, ring_ingest

logger = structlog.get_logger(__name__)

OVERDUE_SECONDS = 10.0
"""A turn queued for longer has lost its ring, unless the queue is simply long."""

CONSUMING_SECONDS = 15.0
"""A consumer whose loop has not shown itself for longer is not consuming."""

_QUEUE_KEY = "amber:celery:"
_RECONNECT_SECONDS = 0.5


class Keeper:
    """Starts with the worker (`start`), drains it on shutdown (`drain`)."""

    def __init__(self, worker: Worker, *, queue: str) -> None:
        self._worker = worker
        self._queue = queue
        self._first = True

    def start(self) -> None:
        threading.Thread(target=self._keep, name="keeper", daemon=True).start()
        if self._queue == "chat":
            asyncio.run_coroutine_threadsafe(_hear_cancels(), worker_loop())
            openai_model.preload()

    def drain(self) -> None:
        """No more claims; after the grace, running turns go back to the queue. Returns at once.

        Documents go back at their next step: there is nobody who waits for one to be finished.
        """
        self._worker.is_draining = True
        holds.stop_all(holds.Stop.RELEASED)
        threading.Thread(target=self._release_after_grace, name="drain", daemon=True).start()

    def _release_after_grace(self) -> None:
        deadline = time.monotonic() + settings.AMBER_SHUTDOWN_GRACE_SECONDS
        while stopping.running_ids() and time.monotonic() < deadline:
            time.sleep(0.1)
        for turn_id in stopping.running_ids():
            stopping.stop(turn_id, Stop.RELEASED)

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
        if self._queue == "chat":
            self._renew()
        else:
            holds.keep(self._worker.name)
        self._beat()
        if self._worker.is_draining:
            return
        if self._queue == "chat":
            self._care_for_turns()
        else:
            self._care_for_documents()

    def _care_for_turns(self) -> None:
        for turn_id in sweep.sweep_turns():
            tasks.ring_turn(turn_id)
        if self._first or _is_empty("chat"):
            overdue = 0.0 if self._first else OVERDUE_SECONDS
            for turn_id in sweep.overdue_turns(overdue):
                tasks.ring_turn(turn_id)
        self._first = False
        for name in due_chores():
            tasks.ring_chore(name)

    def _care_for_documents(self) -> None:
        """What a dead worker left; what waited for its time; what no ring came through for."""
        sweep_documents()
        sweep_repositories()
        switching.finish_switches()
        if _is_empty("ingest"):
            if claims.is_anything_waiting():
                ring_ingest()
            if importing.is_anything_waiting():
                ring_imports()

    def _renew(self) -> None:
        """Keep what is ours, stop what was cancelled or is another's: two statements."""
        mine = stopping.running_ids()
        lease_seconds = settings.AMBER_LEASE_SECONDS
        Turn.objects.renew(mine, worker=self._worker.name, lease_seconds=lease_seconds)
        held = Turn.objects.filter(pk__in=mine, worker=self._worker.name, status=TurnStatus.RUNNING)
        unwanted = dict(held.unwanted().values_list("pk", "is_unwanted"))
        for turn_id in mine:
            if turn_id not in unwanted:
                stopping.stop(turn_id, Stop.FENCED)
            elif unwanted[turn_id]:
                stopping.stop(turn_id, Stop.CANCELLED)

    def _beat(self) -> None:
        if time.monotonic() - self._worker.consuming_at > CONSUMING_SECONDS:
            return
        WorkerHeartbeat.objects.update_or_create(
            worker=self._worker.name, defaults={"queue": self._queue, "beat_at": Now()}
        )


def consuming_queues(max_age_seconds: float = 20.0) -> set[str]:
    """The queues that some worker consumes right now: what /readyz asks for."""
    alive = WorkerHeartbeat.objects.filter(beat_at__gt=Now() - timedelta(seconds=max_age_seconds))
    return set(alive.values_list("queue", flat=True))


def _is_empty(queue: str) -> bool:
    return amber_redis.client().llen(_QUEUE_KEY + queue) == 0


async def _hear_cancels() -> None:
    """Cancel requests as they are announced; lease renewal finds those missed here."""
    while True:
        try:
            async with amber_redis.async_blocking_client().pubsub() as pubsub:
                await pubsub.subscribe(control_channel())
                async for message in pubsub.listen():
                    if message["type"] == "message":
                        stopping.stop(UUID(message["data"].decode()), Stop.CANCELLED)
        except (RedisError, OSError, ValueError) as exc:
            logger.warning("control_channel_lost", reason=type(exc).__name__)
        await asyncio.sleep(_RECONNECT_SECONDS)
