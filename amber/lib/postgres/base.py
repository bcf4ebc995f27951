"""Give Django's backend for Postgres a pool that recovers as soon as Postgres does, and transactions
that say for which tenant they are.

psycopg's own pool doubles its pause between attempts from 1 s on, for five minutes: after an outage
it stays away for as long again. And each dead connection that is found in it costs the caller a
pause, which doubles too: with five of them a request fails although Postgres is back. Everything
else is Django's and psycopg's: https://www.psycopg.org/psycopg3/docs/advanced/pool.html

The tenant (`amber.lib.database.tenant`) is set in front of the first statement of a transaction, and
of each statement outside of one, in the same message: the simple protocol takes several statements,
and runs them as one transaction. So it costs no round trip, ends with the transaction, and is safe
behind PgBouncer in transaction mode.
"""

import contextlib
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from psycopg import ClientCursor, Connection, sql
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from amber.lib.database.tenant import EVERYBODY, SYSTEM, Tenant, current_tenant

RECONNECT_SECONDS: Final = 2.0
"""The length of a round of attempts: at once, after 1 s and after 2. Then the next one begins."""


class ReconnectingPool(ConnectionPool[Connection[Any]]):
    """A pool that tries every second while Postgres is away, and drops all connections with the
    first dead one.

    A connection is checked each time that it is handed out, which costs 0.07 ms.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(check=self._check_or_drain, reconnect_timeout=RECONNECT_SECONDS, **options)

    def _check_or_drain(self, conn: Connection[Any]) -> None:
        """Check a connection. On psycopg's OperationalError the caller gets the first new one."""
        try:
            self.check_connection(conn)
        except Exception:
            self.drain()
            raise

    def reconnect_failed(self) -> None:
        """Ask for a connection: nothing else lets the pool grow for those who wait already.

        Runs in the pool's own thread, and gives up at once: what counts is that it was asked for.
        """
        with contextlib.suppress(PoolTimeout), self.connection(timeout=0.001):
            pass


_UNSURE: Final = object()
TENANT_ROLE: Final = "TENANT_ROLE"
"""Key of a database's settings: the role that each tenant's transaction takes. For tests, whose login
may take any; elsewhere the login itself is the role."""


class TenantCursor(ClientCursor[Any]):
    """Sends the tenant ahead of a statement where Postgres does not know it yet.

    `wrapper` is Django's connection; those of the pool's own checks have none.
    """

    wrapper: "DatabaseWrapper | None" = None

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        ahead = self.wrapper.tenant_sql() if self.wrapper else ""
        if not self.wrapper or not ahead:
            return super().execute(query, params, **options)
        if params is not None:
            ahead = ahead.replace("%", "%%")
        super().execute(ahead + self._text(query), params, **options)
        for _ in range(self.wrapper.note_tenant()):
            self.nextset()
        return self

    def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        self._say_tenant()
        super().executemany(query, params_seq, **options)

    def copy(self, statement: Any, params: Any = None, **options: Any) -> Any:
        self._say_tenant()
        return super().copy(statement, params, **options)

    def _say_tenant(self) -> None:
        """Set the tenant by itself, inside of a transaction: these statements cannot follow another
        in one message."""
        if self.wrapper and self.wrapper.tenant_sql():
            assert self.wrapper.in_atomic_block, "A tenant needs a transaction."
            self.execute("SELECT")

    def _text(self, query: Any) -> str:
        if isinstance(query, bytes):
            return query.decode()
        return query if isinstance(query, str) else str(query.as_string(self))


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's wrapper with another class of pool, and cursors that say the tenant."""

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
        return {**super().get_connection_params(), "cursor_factory": TenantCursor}

    def create_cursor(self, name: str | None = None) -> Any:
        cursor = super().create_cursor(name)
        cursor.wrapper = self
        return cursor

    def tenant_sql(self) -> str:
        """Return what to send ahead of a statement: nothing where the transaction knows it, or
        where no policy binds the login."""
        tenant = current_tenant()
        if self.alias == SYSTEM:
            return ""
        assert self.connection is not None
        if self.connection.pgconn.transaction_status == TransactionStatus.IDLE:
            self._said = None
        if tenant == self._said:
            return ""
        return self._role_sql(tenant) + _settings_sql(tenant)

    def note_tenant(self) -> int:
        """Remember that the open transaction knows the tenant; return how many results came ahead
        of the statement's."""
        self._said = current_tenant()
        return 2 if self.settings_dict.get(TENANT_ROLE) else 1

    def _role_sql(self, tenant: Tenant | None) -> str:
        role = self.settings_dict.get(TENANT_ROLE)
        if not role:
            return ""
        return f"SET LOCAL ROLE {'NONE' if tenant in (None, EVERYBODY) else role}; "

    def _savepoint_rollback(self, sid: str) -> None:
        """A setting made since the savepoint is taken back with it."""
        super()._savepoint_rollback(sid)  # type: ignore[misc]  # Django's own, unknown to its stubs
        self._said = _UNSURE


@lru_cache(maxsize=1024)
def _settings_sql(tenant: Tenant | None) -> str:
    """Return one statement that sets the tenant for the transaction; what is empty by default is
    left out where it is."""
    values = {
        "amber.organization": str((tenant and tenant.organization_id) or ""),
        "amber.user": tenant.user_setting if tenant else "",
    }
    calls = [
        f"set_config({sql.quote(key)}, {sql.quote(value)}, true)" for key, value in values.items()
    ]
    return f"SELECT {', '.join(calls)}; "
