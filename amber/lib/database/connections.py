"""Manage a thread's database connections: give them back, have one of its own, go past PgBouncer.

Connections belong to a thread. Coroutines read the database in a thread that closes its connections at the end
(`in_thread`, `make_async`).
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking function beside the event loop; return what it returns, or raise what it raises."""

    def run() -> T:
        try:
            return function(*args, **kwargs)
        finally:
            connections.close_all()

    return await asyncio.to_thread(run)


def make_async(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Make a coroutine function of a blocking one: each call runs in a thread (`in_thread`)."""

    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await in_thread(function, *args, **kwargs)

    return call


def release_connections() -> None:
    """Give this thread's connections back, unless they are inside of a transaction.

    The pool is small and the other side may take its time.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def use_own_connection() -> None:
    """Let this thread connect by itself, outside of the process's pool, which others may exhaust.

    It holds its connection until it closes it.
    """
    own = connections["default"].copy()
    own.settings_dict["OPTIONS"].pop("pool", None)
    connections["default"] = own


@contextmanager
def past_pooler() -> Iterator[None]:
    """Let this thread's default connection lead to Postgres itself inside of the block.

    For what a session must keep from one statement to the next. It is of the same login, and outside of the
    pool. Without AMBER_DATABASE_DIRECT_URL the connection stays what it is.
    """
    if not settings.AMBER_DATABASE_DIRECT:
        yield
        return
    outer: Any = connections["default"]
    outer.close()
    inner = outer.copy()
    inner.settings_dict.update(settings.AMBER_DATABASE_DIRECT)
    connections["default"] = inner
    try:
        yield
    finally:
        inner.close()
        connections["default"] = outer


def keeps_session() -> bool:
    """Return whether this thread's connection has a session of Postgres to itself. One query.

    PgBouncer tells a number of its own where Postgres tells its process.
    """
    connected: Any = connections["default"]
    with connected.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    return bool(pid == connected.connection.info.backend_pid)
