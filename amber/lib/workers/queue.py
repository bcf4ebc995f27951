"""Enqueue tasks for Celery by name: `enqueue(queue, task, *arguments)`.

Promises nothing: without Redis a message is lost and logged, and the next sweep enqueues it again.
"""

import os
from collections import deque
from contextlib import nullcontext
from functools import cache
from typing import Any, Final

import structlog
from celery import Celery
from django.conf import settings
from kombu import Producer, Queue
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from amber.lib.tracing import names, spans

logger = structlog.get_logger(__name__)

QUEUES: Final = ("chat", "ingest")
TRACE_HEADER: Final = "trace_parent"
"""The header of a message that names the span which sent it."""
MAX_REASON_CHARS: Final = 200
SEND_SECONDS: Final = 2.0
"""A Redis that hangs must not hang a request; the worker's own connections may wait for longer."""


class MessageSender:
    """Sends an application's messages, each by a producer of its own, and keeps the producers.

    Celery itself would keep up its pool, announce the queue, and have kombu make a client of Redis for
    each message: 0.5 ms of CPU instead of 0.15.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._idle: deque[Producer] = deque()

    def send(self, queue: str, task: str, arguments: tuple[str, ...]) -> None:
        """Send a message. Raises OperationalError, RedisError, OSError."""
        try:
            producer = self._idle.pop()
        except IndexError:  # asking first whether there is one would lose a race
            producer = self._new_producer()
        self._app.send_task(
            task,
            args=arguments,
            argsrepr=repr(arguments),
            kwargsrepr="{}",
            queue=queue,
            declare=(),
            retry=False,
            headers={TRACE_HEADER: parent} if (parent := spans.trace_parent()) else None,
            producer=producer,
        )
        self._idle.append(producer)  # unless it failed, with its connection perhaps

    def _new_producer(self) -> Producer:
        made: Producer = self._app.amqp.Producer(self._app.connection_for_write())
        channel: Any = made.channel
        client = channel.client
        channel.conn_or_acquire = lambda _=None: nullcontext(client)
        return made


@cache
def _sender() -> MessageSender:
    """Return this process's sender. Its application has no tasks."""
    app = Celery("amber", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    options = {**settings.CELERY_BROKER_TRANSPORT_OPTIONS, "socket_timeout": SEND_SECONDS}
    app.conf.update(broker_transport_options=options, task_queues=[*map(Queue, QUEUES)])
    return MessageSender(app)


os.register_at_fork(after_in_child=_sender.cache_clear)


def enqueue(queue: str, task: str, *arguments: str) -> None:
    """Send the queue's workers a message to run `task(*arguments)`. One round trip to Redis."""
    with spans.span(names.SEND.format(queue=queue), _about(queue), kind="producer"):
        try:
            _sender().send(queue, task, arguments)
        except (OperationalError, RedisError, OSError) as exc:
            logger.warning(
                "message_not_enqueued",
                task=task,
                arguments=arguments,
                reason=f"{type(exc).__name__}: {exc}"[:MAX_REASON_CHARS],
            )


def _about(queue: str) -> spans.Attributes:
    return {
        names.MESSAGING_SYSTEM: "celery",
        names.MESSAGING_DESTINATION: queue,
        names.MESSAGING_OPERATION: "send",
    }


def waiting(queue: str) -> int:
    """Return how many messages wait in the queue. Raises RedisError."""
    found: int = amber_redis.client().llen(_key(queue))
    return found


def _key(queue: str) -> str:
    return f"{settings.CELERY_BROKER_TRANSPORT_OPTIONS['global_keyprefix']}{queue}"
