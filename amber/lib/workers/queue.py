"""Enqueue tasks for Celery by name: `enqueue(queue, task, *arguments)`.

Promises nothing: without Redis a message is lost and logged, and the next sweep enqueues it again.
"""

from functools import cache
from typing import Final

import structlog
from celery import Celery
from django.conf import settings
from kombu import Queue
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from amber.lib.tracing import names, spans

logger = structlog.get_logger(__name__)

QUEUES: Final = ("chat", "ingest")
TRACE_HEADER: Final = "trace_parent"
"""The header of a message that names the span which sent it."""
SEND_SECONDS: Final = 2.0
"""A Redis that hangs must not hang a request; the worker's own connections may wait for longer."""


@cache
def _sender() -> Celery:
    """Return an application that sends messages, and has no tasks."""
    app = Celery("amber", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    options = {**settings.CELERY_BROKER_TRANSPORT_OPTIONS, "socket_timeout": SEND_SECONDS}
    app.conf.update(broker_transport_options=options, task_queues=[*map(Queue, QUEUES)])
    return app


def enqueue(queue: str, task: str, *arguments: str) -> None:
    """Send the queue's workers a message to run `task(*arguments)`. One round trip to Redis."""
    with spans.span(names.SEND.format(queue=queue), _about(queue), kind="producer"):
        _send(queue, task, arguments)


def _send(queue: str, task: str, arguments: tuple[str, ...]) -> None:
    headers = {TRACE_HEADER: parent} if (parent := spans.trace_parent()) else None
    try:
        _sender().send_task(task, args=arguments, queue=queue, retry=False, headers=headers)
    except (OperationalError, RedisError, OSError) as exc:
        logger.warning(
            "message_not_enqueued", task=task, arguments=arguments, reason=type(exc).__name__
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
