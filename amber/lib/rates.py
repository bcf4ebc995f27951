"""Limit how often something may happen: counted in Redis by `limits`, for all processes.

Sliding windows of two counters: exact to within the evenness of the last window, two keys for each
caller however many requests. One script of Redis checks and counts, so that simultaneous requests
get no more. Refuses to decide what happens without Redis: `take` raises, callers say why they go on
or not. `limits` is imported on first use: workers never pay for it.
"""

import math
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings

from amber.lib import redis as amber_redis
from amber.lib.errors import RateLimited

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.strategies import SlidingWindowCounterRateLimiter


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `limit` in any `seconds`; 0 means unlimited."""

    kind: str
    limit: int
    seconds: int


def take(rate: Rate, who: str, *, organization_id: UUID | None = None) -> None:
    """Count one more. One round trip to Redis, another for a refusal.

    Raises RateLimited, redis.ConnectionError, redis.TimeoutError.
    """
    if rate.limit <= 0:
        return
    item, name = _item(rate), amber_redis.key("rate", organization_id, rate.kind, who).decode()
    limiter = _limiter(settings.REDIS_URL)
    if limiter.hit(item, name):
        return
    free_at, _ = limiter.get_window_stats(item, name)
    left_seconds = max(1, math.ceil(free_at - time.time()))
    raise RateLimited(
        f"Only {rate.limit:,} requests are allowed in {rate.seconds} seconds. "
        f"Try again in {left_seconds} seconds.",
        retry_after_seconds=left_seconds,
        headers={
            "X-RateLimit-Limit": str(rate.limit),
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(math.ceil(time.time()) + left_seconds),
        },
    )


@cache
def _item(rate: Rate) -> "RateLimitItem":
    from limits import RateLimitItemPerSecond

    return RateLimitItemPerSecond(rate.limit, rate.seconds, namespace="")


@cache
def _limiter(url: str) -> "SlidingWindowCounterRateLimiter":
    """Return a limiter on the connections that all threads of this process share."""
    from limits.storage import RedisStorage
    from limits.strategies import SlidingWindowCounterRateLimiter

    pool = amber_redis.client().connection_pool
    return SlidingWindowCounterRateLimiter(
        RedisStorage("redis://", connection_pool=pool, key_prefix="amber:limits")
    )
