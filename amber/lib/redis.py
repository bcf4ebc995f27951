"""Connect to the installation's Redis, and build its keys.

Three clients, all bytes in and bytes out, from `settings.REDIS_URL`:

    client()                 threads; short timeouts
    async_client()           the running event loop; short timeouts
    async_blocking_client()  the running event loop; XREAD BLOCK, subscribe: waits up to
                             LONGEST_WAIT_SECONDS

Threads of a process share one client each, coroutines of an event loop one each; a forked child
gets its own. redis-py 8 by itself reads at most 5 s (a longer BLOCK fails), allows 100 connections
and then raises, speaks RESP3, and repeats a failed command 10 times. Here the pool makes callers
wait, RESP2 is spoken (servers from 6.2 on), and **nothing is repeated**: after a lost connection
nobody knows whether an INCR or an XADD was executed, so the caller decides. Connections that died
while idle are noticed and replaced when they are taken from the pool.

Behind sentinels (`redis+sentinel://`, `amber.lib.redis_address`) each new connection asks them for the
primary. After a failover the old connections end, by themselves or with the first write that a demoted
primary refuses, and the next ones lead to the new primary. `open_client` opens all of a process's
connections to Redis but Celery's own.

Redis must not hold anything that cannot be rebuilt from Postgres.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final, cast
from urllib.parse import quote
from uuid import UUID
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from django.conf import settings
from hiredis import pack_command
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry as AsyncRetry
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.asyncio.sentinel import SentinelConnectionPool as AsyncSentinelPool
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from amber.lib.redis_address import WatchedRedis, sentinel_options, watched_redis

# Redis answers in under a millisecond; 2 s without an answer is an outage, not load.
SHORT_TIMEOUT_SECONDS: Final = 2.0
CONNECT_TIMEOUT_SECONDS: Final = 2.0
# No command may block for as long. Without a limit a half-open connection would block forever.
LONGEST_WAIT_SECONDS: Final = 5.0
# How long a caller waits for another one's connection before that is an error.
POOL_WAIT_SECONDS: Final = 5.0
MAX_CONNECTIONS: Final = 32
# A PING before a command on a connection idle for longer: finds half-open ones behind a NAT.
HEALTH_CHECK_SECONDS: Final = 30

_lock = threading.Lock()
_clients: dict[tuple[int, str], redis.Redis] = {}
_async_clients: WeakKeyDictionary[
    asyncio.AbstractEventLoop, dict[tuple[str, bool], redis.asyncio.Redis]
] = WeakKeyDictionary()


def key(kind: str, organization_id: UUID | str | None, *parts: UUID | str | int) -> bytes:
    """Return `amber:<kind>:<organization>:<part>…`; None means that no organization owns it ("-").

    Each kind has one function that calls this one, beside the code that owns the kind. Parts are
    percent-encoded, so no part can reach into another key.
    """
    organization = "-" if organization_id is None else str(organization_id)
    named = ("amber", kind, organization, *map(str, parts))
    return ":".join(quote(name, safe="") for name in named).encode()


def client() -> redis.Redis:
    """Return the client for commands that answer at once.

    It raises redis.ConnectionError, redis.TimeoutError.
    """
    name = (os.getpid(), settings.REDIS_URL)
    found = _clients.get(name)
    if found is None:
        with _lock:
            found = _clients.get(name)
            if found is None:
                found = _clients[name] = open_client(settings.REDIS_URL)
    return found


def async_client() -> redis.asyncio.Redis:
    """Return the running event loop's client for commands that answer at once."""
    return _loop_client(blocking=False)


def async_blocking_client() -> redis.asyncio.Redis:
    """Return the running event loop's client for commands that wait.

    Give each command a time limit well below LONGEST_WAIT_SECONDS.
    """
    return _loop_client(blocking=True)


async def call_together(commands: Sequence[Sequence[Any]]) -> list[Any]:
    """Send commands in one message and return their answers, errors of single ones among them.

    As a pipeline does, for two thirds of its CPU: answers come as Redis wrote them. Several are one
    transaction, so that nobody reads between them. Raises what a pipeline raises.
    """
    pool: Any = async_client().connection_pool
    sent = [(b"MULTI",), *commands, (b"EXEC",)] if len(commands) > 1 else commands
    connection = await pool.get_connection()
    try:
        await connection.send_packed_command(pack(*sent))
        answers = [await _answer(connection) for _ in sent]
    except BaseException:
        await connection.disconnect(nowait=True)  # answers may be left in it
        raise
    finally:
        await pool.release(connection)
    if len(commands) == 1:
        return answers
    done = answers[-1]
    if isinstance(done, redis.RedisError):  # one was refused before any was executed
        raise next(each for each in answers if isinstance(each, redis.RedisError))
    return list(done)


async def listen(pubsub: PubSub, *, silence_seconds: float) -> AsyncGenerator[dict[str, Any], None]:
    """Yield what comes on the channels, for ever.

    After `silence_seconds` without a message Redis is pinged, so that a half-open connection is noticed within
    twice that time. Raises RedisError and OSError.
    """
    is_asked = False
    while True:
        message: Any = await pubsub.get_message(timeout=silence_seconds)
        if message is not None:
            yield message
        elif is_asked:
            raise redis.TimeoutError("The channels are silent.")
        else:
            await pubsub.ping()
        is_asked = message is None


def pack(*commands: Sequence[Any]) -> bytes:
    """Return commands as Redis reads them, for `send_packed_command`: packed in C, unlike redis-py's own
    for event loops, which takes four times as long."""
    return b"".join([pack_command(tuple(command)) for command in commands])


async def _answer(connection: Any) -> Any:
    try:
        return await connection.read_response()
    except redis.ResponseError as error:
        return error


def refuses_writes(error: redis.RedisError) -> bool:
    """Return whether Redis answers but does not write: a replica, or short of disk or memory."""
    return isinstance(error, redis.ResponseError) and (
        isinstance(error, redis.ReadOnlyError | redis.OutOfMemoryError)
        or str(error).startswith(("NOREPLICAS", "MISCONF"))
    )


def check_writes() -> None:
    """Write what nobody reads. Raises what redis-py raises, also where Redis answers but writes
    nothing: to ask whether it is there does not tell."""
    client().set("amber:writable", "1", ex=60)


async def close_async_clients() -> None:
    """Close the running loop's clients; call it before the loop ends."""
    for each in _async_clients.pop(asyncio.get_running_loop(), {}).values():
        await each.aclose()
        await each.connection_pool.disconnect()
        if isinstance(each.connection_pool, AsyncSentinelPool):
            await each.connection_pool.sentinel_manager.aclose()


def _loop_client(*, blocking: bool) -> redis.asyncio.Redis:
    of_loop = _async_clients.setdefault(asyncio.get_running_loop(), {})
    name = (settings.REDIS_URL, blocking)
    if name not in of_loop:
        of_loop[name] = _new_async_client(settings.REDIS_URL, blocking=blocking)
    return of_loop[name]


class _SentinelPool(SentinelConnectionPool, redis.BlockingConnectionPool):
    """A pool of the primary's connections that lets callers wait."""


class _AsyncSentinelPool(AsyncSentinelPool, redis.asyncio.BlockingConnectionPool):
    """The same for an event loop."""


def open_client(url: str) -> redis.Redis:
    """Return a client of its own for threads; `client` is the one that they share."""
    options = {**_pool_options(blocking=False), "retry": Retry(NoBackoff(), 0)}
    if (watched := watched_redis(url)) is None:
        return redis.Redis(connection_pool=redis.BlockingConnectionPool.from_url(url, **options))
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        watched.sentinels,
        sentinel_kwargs={**sentinel_options(watched), "retry": Retry(NoBackoff(), 0)},
    )
    options |= _primary_options(watched)
    found = sentinel.master_for(  # type: ignore[no-untyped-call]
        watched.service, connection_pool_class=_SentinelPool, **options
    )
    return cast(redis.Redis, found)


def _new_async_client(url: str, *, blocking: bool) -> redis.asyncio.Redis:
    options = {**_pool_options(blocking=blocking), "retry": AsyncRetry(NoBackoff(), 0)}
    if (watched := watched_redis(url)) is None:
        pool = redis.asyncio.BlockingConnectionPool.from_url(url, **options)
        return redis.asyncio.Redis(connection_pool=pool)
    sentinel = AsyncSentinel(  # type: ignore[no-untyped-call]
        watched.sentinels,
        sentinel_kwargs={**sentinel_options(watched), "retry": AsyncRetry(NoBackoff(), 0)},
    )
    options |= _primary_options(watched)
    found = sentinel.master_for(
        watched.service, connection_pool_class=_AsyncSentinelPool, **options
    )
    return cast(redis.asyncio.Redis, found)


def _primary_options(watched: WatchedRedis) -> dict[str, Any]:
    tls = {"ssl": True, **watched.tls} if watched.tls else {}
    return {"db": watched.db, **watched.login, **tls}


def _pool_options(*, blocking: bool) -> dict[str, Any]:
    return {
        "max_connections": MAX_CONNECTIONS,
        "timeout": POOL_WAIT_SECONDS,
        "protocol": 2,
        "socket_timeout": LONGEST_WAIT_SECONDS if blocking else SHORT_TIMEOUT_SECONDS,
        "socket_connect_timeout": CONNECT_TIMEOUT_SECONDS,
        # A PING in between would mix with the messages of a subscription.
        "health_check_interval": 0 if blocking else HEALTH_CHECK_SECONDS,
        # CLIENT SETINFO is a command of Redis 7.2.
        "driver_info": None,
    }
