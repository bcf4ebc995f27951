"""A migrated database of its own with rows of several people in it, for tests that log in as roles."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from tests.fixtures.databases import drop_database, migrated, own_database
from tests.wall.rows import Rows, write_rows


@dataclass(frozen=True)
class WalledDatabase:
    """`url` logs in as the server's superuser, which no policy binds."""

    url: str
    rows: Rows
    _logins: dict[str, "psycopg.Connection[Any]"] = field(default_factory=dict)

    def new_login(self, role: str) -> "psycopg.Connection[Any]":
        return psycopg.connect(make_conninfo(self.url, user=role))

    @contextmanager
    def login(self, role: str) -> Iterator["psycopg.Connection[Any]"]:
        """A connection of this role's, the same each time. What it does is rolled back."""
        login = self._logins.get(role) or self.new_login(role)
        self._logins[role] = login
        assert login.info.transaction_status == TransactionStatus.IDLE
        try:
            yield login
        finally:
            login.rollback()

    def close(self) -> None:
        for login in self._logins.values():
            login.close()

    @contextmanager
    def acting(
        self, settings: Mapping[str, str], role: str = "amber_app"
    ) -> Iterator["psycopg.Connection[Any]"]:
        """The same, in a transaction with these of Amber's settings."""
        with self.login(role) as login:
            for name, value in settings.items():
                login.execute("SELECT set_config(%s, %s, true)", [f"amber.{name}", value])
            yield login


@contextmanager
def walled_database() -> Iterator[WalledDatabase]:
    """Gone with the block."""
    name = f"amber_wall_{secrets.token_hex(4)}"
    url = own_database(name, migrated())
    try:
        with psycopg.connect(url) as server:
            rows = write_rows(server)
        database = WalledDatabase(url, rows)
        yield database
        database.close()
    finally:
        drop_database(name)
