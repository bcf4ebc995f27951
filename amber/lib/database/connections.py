"""Manage the database connections of a thread that is going to wait for somebody else."""

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
