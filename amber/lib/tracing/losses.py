"""Count the spans that were dropped, in Redis, where every web process reads them for `/metrics`."""

from typing import Any

import structlog
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis

logger = structlog.get_logger(__name__)


def count(spans: int) -> None:
    """Count spans by one round trip to Redis. What cannot be counted is in the log anyway."""
    logger.warning("trace_spans_lost", spans=spans)
    try:
        amber_redis.client().incrby(_key(), spans)
    except (RedisError, OSError) as exc:
        logger.warning("losses_not_counted", reason=type(exc).__name__)


def lost_count() -> int:
    """Return how many were lost by all processes since Redis began. Raises RedisError."""
    found: Any = amber_redis.client().get(_key())
    return int(found or 0)


def _key() -> bytes:
    return amber_redis.key("trace-spans-lost", None)
