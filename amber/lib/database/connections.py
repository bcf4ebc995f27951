"""Manage a thread's database connections: give them back, have one of its own, go past PgBouncer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connections


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
