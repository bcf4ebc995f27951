"""Maintain a chat worker's turns, and enqueue the periodic jobs that are due.

A listener on Redis receives cancel requests at once; lease renewal finds those it missed.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from amber.lib.workers import garbage
from amber.lib.workers.leases import StopReason
from amber.lib.workers.queue import waiting
from amber.lib.workers.thread_bridge import worker_loop
from chats.events.stream import control_channel
from chats.queue import enqueue_turn
from chats.running.stopping import running_turns
from chats.turns import claims, sweep
from engine.provider import client
from operations.maintenance.periodic_jobs import claim_due_jobs
from operations.queue import enqueue_periodic_job

logger = structlog.get_logger(__name__)

OVERDUE_SECONDS = 10.0
"""A turn queued for longer has lost its message, unless the queue is simply long."""

_ID: Final = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RECONNECT_SECONDS = 0.5
_SILENCE_SECONDS = 3.0


class TurnMaintenance:
    """A `QueueMaintenance` of the `chat` queue."""

    def __init__(self) -> None:
        self._first = True

    def begin(self) -> None:
        """Listen for cancel requests, and import what a turn needs, so that the first one need not
        wait."""
        asyncio.run_coroutine_threadsafe(_hear_cancels(), worker_loop())
        import_module("chats.running.runner")
        client.preload()
        garbage.set_aside()

    @property
    def sweeps(self) -> Mapping[str, Callable[[], None]]:
        return {
            "sweep_turns": self._give_back_lost,
            "enqueue_overdue_turns": self._enqueue_overdue,
            "enqueue_due_jobs": self._enqueue_due_jobs,
        }

    def _give_back_lost(self) -> None:
        for turn_id in sweep.sweep_turns():
            enqueue_turn(turn_id)

    def _enqueue_overdue(self) -> None:
        if self._first or waiting("chat") == 0:
            # At the start none waits to be overdue: messages may have been lost meanwhile, and one
            # too many does nothing.
            overdue = 0.0 if self._first else OVERDUE_SECONDS
            for turn_id in sweep.overdue_turns(overdue):
                enqueue_turn(turn_id)
        self._first = False

    def _enqueue_due_jobs(self) -> None:
        for name in claim_due_jobs():
            enqueue_periodic_job(name)

    def drain(self) -> None:
        """Let running turns finish for AMBER_SHUTDOWN_GRACE_SECONDS, then release them to the
        queue."""
        deadline = time.monotonic() + settings.AMBER_SHUTDOWN_GRACE_SECONDS
        while running_turns.ids() and time.monotonic() < deadline:
            time.sleep(0.1)
        running_turns.stop_all(StopReason.RELEASED)


async def _hear_cancels() -> None:
    """Receive cancel requests as they are announced; lease renewal finds those missed here."""
    while True:
        try:
            async with amber_redis.async_blocking_client().pubsub() as pubsub:
                await _listen(pubsub)
        except (RedisError, OSError, ValueError) as exc:
            logger.warning("control_channel_lost", reason=type(exc).__name__)
        await asyncio.sleep(_RECONNECT_SECONDS)


def _hear(said: bytes) -> None:
    """Do what is said: a turn's id cancels it. Words of a newer release are passed over."""
    if said == claims.WAITING_MESSAGE:
        claims.note_waiting()
    elif _ID.fullmatch(said):
        running_turns.stop(UUID(said.decode()), StopReason.CANCELLED)


async def _listen(pubsub: PubSub) -> None:
    """Stop the turns that are announced. Raises RedisError and OSError."""
    await pubsub.subscribe(control_channel())
    async for message in amber_redis.listen(pubsub, silence_seconds=_SILENCE_SECONDS):
        if message["type"] == "message":
            _hear(message["data"])
