"""Give Django's backend for Postgres a pool that recovers as soon as Postgres does, and transactions
that say for which tenant they are.

psycopg's own pool doubles its pause between attempts from 1 s on, for five minutes: after an outage
it stays away for as long again. And each dead connection that is found in it costs the caller a
pause, which doubles too: with five of them a request fails although Postgres is back. Everything
else is Django's and psycopg's: https://www.psycopg.org/psycopg3/docs/advanced/pool.html

The tenant (`amber.lib.database.tenant`) is set for one transaction, by a statement ahead of its
first one. Both go in one pipeline, which Postgres runs as one transaction where none was begun. So the
setting ends with it, and is safe behind PgBouncer in transaction mode. It costs 34 µs a transaction:
several reads are cheaper in one.

The same statement says how long a web process waits for a lock (LOCK_SECONDS); on the system's
connection it says only that. Without a limit all requests would wait behind one ALTER TABLE that waits.

Statements are prepared by Postgres when a connection has made them five times
(`settings.AMBER_PREPARED_STATEMENTS`), which saves most of what a small one costs: planning it, with
the policies of its tables. Searches keep plans of their own (`amber.lib.database.plans`), since the best one
depends on what is asked.
"""

import contextlib
import select
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast
from weakref import WeakKeyDictionary

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base, features, operations
from psycopg import Connection, Cursor, adapters
from psycopg.abc import AdaptContext
from psycopg.adapt import Loader
from psycopg.pq import Format, TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from amber.lib.database.plans import plans_each
from amber.lib.database.tenant import EVERYBODY, SYSTEM, Tenant, current_tenant

RECONNECT_SECONDS: Final = 2.0
"""The length of a round of attempts: at once, after 1 s and after 2. Then the next one begins."""


CHECK_SECONDS: Final = 1.0
"""A connection that answered so recently is only looked at, not asked: 0.002 ms instead of 0.07."""


class ReconnectingPool(ConnectionPool[Connection[Any]]):
    """A pool that tries every second while Postgres is away, and drops all connections with the
    first dead one.

    Connections are checked when they are handed out: each is looked at, since a server that ends
    says so on its sockets, and asked unless it has answered within CHECK_SECONDS, this or whoever had it.
    The one that came back last is handed out first: it knows its statements, and need not be asked.
    """

    def __init__(self, **options: Any) -> None:
        self._asked_at: WeakKeyDictionary[Connection[Any], float] = WeakKeyDictionary()
        super().__init__(check=self._check_or_drain, reconnect_timeout=RECONNECT_SECONDS, **options)

    def _get_ready_connection(self, timeout: float | None) -> Connection[Any] | None:
        self._pool.rotate()  # psycopg takes the first, which has been there the longest
        return super()._get_ready_connection(timeout)

    def putconn(self, conn: Connection[Any]) -> None:
        if conn.pgconn.transaction_status == TransactionStatus.IDLE:
            self._asked_at[conn] = time.monotonic()
        super().putconn(conn)

    def _check_or_drain(self, conn: Connection[Any]) -> None:
        """Check a connection. On psycopg's OperationalError the caller gets the first new one."""
        now = time.monotonic()
        if now - self._asked_at.get(conn, 0.0) < CHECK_SECONDS and not _has_news(conn):
            return
        try:
            self.check_connection(conn)
        except Exception:
            self.drain()
            raise
        self._asked_at[conn] = now

    def reconnect_failed(self) -> None:
        """Ask for a connection: nothing else lets the pool grow for those who wait already.

        Runs in the pool's own thread, and does not wait for the connection: asking makes the pool grow. A pool
        that may be empty asks nothing while nobody waits.
        """
        if not self.min_size and not self.get_stats()["requests_waiting"]:
            return
        with contextlib.suppress(PoolTimeout), self.connection(timeout=0.001):
            pass


def _has_news(conn: Connection[Any]) -> bool:
    """Whether bytes, or the end, wait on a socket that nobody has asked anything."""
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLIN)
    return bool(poll.poll(0))


_UNSURE: Final = object()
TENANT_ROLE: Final = "TENANT_ROLE"
"""Key of a database's settings: the role that each tenant's transaction takes. For tests, whose login
may take any; elsewhere the login itself is the role."""


LOCK_SECONDS: Final = "LOCK_SECONDS"
"""Key of a database's settings: how long a statement waits for a lock; none or 0 is for ever."""


_LIMIT_LOCKS: Final = "set_config('lock_timeout', %s, true)"
_SAY_SQL: Final = (
    "SELECT set_config('amber.organization', %s, true), set_config('amber.user', %s, true)"
)
_SAY_WITH_ROLE_SQL: Final = f"{_SAY_SQL}, set_config('role', %s, true)"


class TenantCursor(Cursor[Any]):
    """Says the tenant ahead of a statement where Postgres does not know it yet.

    `wrapper` is Django's connection; those of the pool's own checks have none.
    """

    wrapper: "DatabaseWrapper | None" = None

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        if plans_each():
            options["prepare"] = False
        if self.wrapper is None or not self.wrapper.must_say_tenant():
            return super().execute(query, params, **options)
        server = self.connection.pgconn
        if server.pipeline_status or server.transaction_status != TransactionStatus.IDLE:
            self._say_tenant()
            return super().execute(query, params, **options)
        with self.connection.pipeline():
            self._say_tenant()
            return super().execute(query, params, **options)

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed. Where it shares a trip with others, that ends it:
        psycopg would say -1."""
        self._fetch_pipeline()
        return super().rowcount

    def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        self._say_tenant_in_transaction()
        super().executemany(query, params_seq, **options)

    def copy(self, statement: Any, params: Any = None, **options: Any) -> Any:
        self._say_tenant_in_transaction()
        return super().copy(statement, params, **options)

    def _say_tenant_in_transaction(self) -> None:
        if self.wrapper is not None and self.wrapper.must_say_tenant():
            assert self.wrapper.in_atomic_block, "A tenant needs a transaction."
            self._say_tenant()

    def _say_tenant(self) -> None:
        assert self.wrapper is not None
        said, values = self.wrapper.tenant_settings()
        # psycopg's cursor: this one would say the tenant ahead of this statement, too.
        Cursor(self.connection).execute(said, values, prepare=self.wrapper.is_preparing)
        self.wrapper.note_tenant()


class UtcLoader(Loader):
    """Reads times in UTC, the zone that Django sets for connections, by psycopg's loader in C.

    That takes 0.3 µs for each. Django's own loader takes 3 µs: 2 ms for the context of a long chat.
    """

    format = Format.TEXT
    timezone = UTC
    """What Django asks a loader for."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._load = _times_loader(oid, context).load

    def load(self, data: Any) -> datetime:
        return cast(datetime, self._load(data))


_times_loader: Final = cast(
    type[Loader], adapters.get_loader(adapters.types["timestamptz"].oid, Format.TEXT)
)


MAX_PARAMETERS: Final = 65_535
"""Of one statement, in Postgres' protocol."""


class DatabaseFeatures(features.DatabaseFeatures):
    max_query_params = MAX_PARAMETERS


class DatabaseOperations(operations.DatabaseOperations):
    def bulk_batch_size(self, fields: Any, objs: Any) -> int:
        return min(len(objs), MAX_PARAMETERS // max(1, len(fields)))


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's wrapper with another class of pool, and cursors that say the tenant."""

    features_class = DatabaseFeatures
    ops_class = DatabaseOperations

    _said: Tenant | object | None = None
    """The tenant that the open transaction knows of; _UNSURE after a savepoint was taken back."""

    if TYPE_CHECKING:  # Django's own, which its type stubs leave out
        _connection_pools: ClassVar[dict[str, Any]]
        _configure_connection: Callable[[Any], None]

    @property
    def pool(self) -> Any:
        options = self.settings_dict["OPTIONS"].get("pool")
        if options and self.alias != NO_DB_ALIAS and self.alias not in self._connection_pools:
            pool = ReconnectingPool(
                kwargs={**self.get_connection_params(), "autocommit": True},
                open=False,  # Django opens it with the first use, in this process
                configure=self._configure_connection,
                **options,
            )
            # Several threads may come here at once; the pools that lose were never opened.
            self._connection_pools.setdefault(self.alias, pool)
        return super().pool

    def get_connection_params(self) -> dict[str, Any]:
        params = super().get_connection_params()
        if self.timezone == UTC:
            params["context"].register_loader("timestamptz", UtcLoader)
        return {**params, "cursor_factory": TenantCursor}

    def create_cursor(self, name: str | None = None) -> Any:
        cursor = super().create_cursor(name)
        cursor.wrapper = self
        return cursor

    @property
    def is_preparing(self) -> bool:
        """Whether statements may be prepared on this connection at all."""
        return self.settings_dict["OPTIONS"].get("prepare_threshold") is not None

    def must_say_tenant(self) -> bool:
        """Whether the open transaction, or the one that the next statement is, does not know the
        tenant. Not where no policy binds the login, nor in a transaction that failed: it takes
        nothing but its end."""
        if self.alias == SYSTEM and not self._lock_timeout:
            return False
        assert self.connection is not None
        status = self.connection.pgconn.transaction_status
        if status == TransactionStatus.IDLE:
            self._said = None
        if status == TransactionStatus.INERROR:
            return False
        return self._is_new if self.alias == SYSTEM else current_tenant() != self._said

    def tenant_settings(self) -> tuple[str, list[str]]:
        """Return the statement that sets the tenant for a transaction, and its values.

        In a new transaction it also sets how long to wait for a lock. Only once: a limit that was set later in
        the transaction stays.
        """
        limits = [self._lock_timeout] if self._lock_timeout and self._is_new else []
        if self.alias == SYSTEM:
            return f"SELECT {_LIMIT_LOCKS}", limits
        said, values = self._tenant_settings()
        return (f"{said}, {_LIMIT_LOCKS}" if limits else said), values + limits

    @property
    def _is_new(self) -> bool:
        """Whether the open transaction has been told nothing, or may have forgotten it."""
        return self._said is None or self._said is _UNSURE

    @property
    def _lock_timeout(self) -> str:
        seconds = self.settings_dict.get(LOCK_SECONDS) or 0
        return f"{seconds * 1_000:.0f}" if seconds else ""

    def _tenant_settings(self) -> tuple[str, list[str]]:
        tenant = current_tenant()
        values = [
            str((tenant and tenant.organization_id) or ""),
            tenant.user_setting if tenant else "",
        ]
        role = self.settings_dict.get(TENANT_ROLE)
        if not role:
            return _SAY_SQL, values
        return _SAY_WITH_ROLE_SQL, [*values, "none" if tenant in (None, EVERYBODY) else role]

    def note_tenant(self) -> None:
        """Remember that the open transaction knows the tenant."""
        self._said = current_tenant()

    def _savepoint_rollback(self, sid: str) -> None:
        """A setting made since the savepoint is taken back with it."""
        super()._savepoint_rollback(sid)  # type: ignore[misc]  # Django's own, unknown to its stubs
        self._said = _UNSURE
