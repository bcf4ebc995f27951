"""Guard the parts of a worker's maintenance: an error in one ends neither the thread nor the rest.

    with guard("sweep_turns"):          a part: no error leaves it
    with guard_row("sweep_turns", …):   one of its rows: an outage still ends the part

Each fault is logged and counted by the part's name in Redis, where every web process reads it for
`/metrics` (`fault_counts`). Not for places where somebody waits for an answer: they need the error.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog
from django.db import InterfaceError, OperationalError
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis

logger = structlog.get_logger(__name__)

OUTAGES: Final = (OperationalError, InterfaceError, RedisError)
"""Errors that a server is away. They are logged without a trace: one every few seconds would hide
the rest of the log."""


@contextmanager
def guard(part: str) -> Iterator[None]:
    """Log and count whatever the block raises, and go on after it."""
    try:
        yield
    except OUTAGES as exc:
        # The driver's own error tells a full disk or a lock that is never free from a server that is away.
        reason = type(exc.__cause__ or exc).__name__
        logger.warning("maintenance_hindered", part=part, reason=reason)
        count_fault(part)
    except Exception:
        logger.exception("maintenance_failed", part=part)
        count_fault(part)


@contextmanager
def guard_row(part: str, **about: str) -> Iterator[None]:
    """Guard one row among many. Raises OUTAGES, which would hit the next row, too."""
    try:
        yield
    except OUTAGES:
        raise
    except Exception:
        logger.exception("maintenance_failed", part=part, **about)
        count_fault(part)


def count_fault(part: str) -> None:
    """Count a fault in Redis: one round trip. A fault that cannot be counted is still in the log."""
    try:
        amber_redis.client().hincrby(_faults_key(), part, 1)
    except (RedisError, OSError) as exc:
        logger.warning("fault_not_counted", part=part, reason=type(exc).__name__)


def fault_counts() -> dict[str, int]:
    """Return all workers' faults by part since Redis began. Raises RedisError."""
    found: Any = amber_redis.client().hgetall(_faults_key())
    return {part.decode(): int(count) for part, count in found.items()}


def _faults_key() -> bytes:
    return amber_redis.key("maintenance-faults", None)
