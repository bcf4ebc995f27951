"""Find out what PgBouncer, or another pooler, does to a session of Postgres.

In transaction mode two connections that are open at once take turns with one session, which then keeps
nothing for either. https://www.pgbouncer.org/features.html
"""

import secrets
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg import pq

from amber.backups.programs import conninfo

MIGRATES_THROUGH_POOLER: Final = (
    "This command reaches Postgres through PgBouncer in transaction mode, and needs a session of its own: "
    "set AMBER_DATABASE_DIRECT_URL to the address of Postgres itself."
)
LOSES_STATEMENTS: Final = (
    "DATABASE_URL leads through a PgBouncer that loses prepared statements: set AMBER_PREPARED_STATEMENTS=0, "
    "or use PgBouncer 1.21 or newer with max_prepared_statements above 0."
)
_LOOKS: Final = 3
"""Others may take the session between two looks."""


def shares_sessions(database: Mapping[str, Any]) -> bool:
    """Return whether two connections were seen to share a session. Raises psycopg.OperationalError."""
    with _connect(database) as one, _connect(database) as other:
        return any(_backend(one) == _backend(other) for _ in range(_LOOKS))


def loses_statements(database: Mapping[str, Any]) -> bool:
    """Return whether a connection was seen to meet what another one prepared.

    Raises psycopg.OperationalError.
    """
    with _connect(database) as one, _connect(database) as other:
        return any(_meet(one, other) for _ in range(_LOOKS))


def _meet(one: psycopg.Connection[Any], other: psycopg.Connection[Any]) -> bool:
    name = f"amber_{secrets.token_hex(8)}".encode()
    prepared = [each.pgconn.prepare(name, b"SELECT 1") for each in (one, other)]
    return any(each.status != pq.ExecStatus.COMMAND_OK for each in prepared)


def _backend(connected: psycopg.Connection[Any]) -> int:
    (pid,) = connected.execute("SELECT pg_backend_pid()").fetchone() or (0,)
    return int(pid)


def _connect(database: Mapping[str, Any]) -> psycopg.Connection[Any]:
    password = {"password": database["PASSWORD"]} if database["PASSWORD"] else {}
    return psycopg.connect(
        conninfo(database), autocommit=True, prepare_threshold=None, connect_timeout=5, **password
    )
