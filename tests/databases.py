"""Makes and drops databases of the tests' Postgres; a pytest plugin.

One is migrated for a whole run with xdist. Those of its workers and of the platforms of end-to-end
tests begin as copies: applying the migrations costs two seconds of processor time, a copy a tenth
of one.
"""

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.db import connection

from amber import database_roles

ROOT = Path(__file__).resolve().parent.parent
EMPTY = "template1"
VARIABLE = "AMBER_TESTS_MIGRATED"
"""Names the database that is copied; xdist's workers inherit it from their controller."""
LOCK = 7_301
"""An advisory lock: whoever comes first migrates, the others wait for it."""


@pytest.hookimpl
def pytest_configure() -> None:
    os.environ.setdefault(VARIABLE, f"amber_migrated_{secrets.token_hex(4)}")


@pytest.hookimpl
def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        drop_database(os.environ[VARIABLE])


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Overrides pytest-django's."""
    connection.settings_dict["TEST"]["TEMPLATE"] = migrated()


@pytest.fixture(scope="session", autouse=True)
def database_of_worker(request: pytest.FixtureRequest) -> None:
    """Make the database of an xdist worker before its first test, while nobody uses the one that is copied."""
    if hasattr(request.config, "workerinput"):
        request.getfixturevalue("django_db_setup")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Overrides pytest-django's: a thread that outlives its test does not keep the database from being dropped."""
    yield
    disconnect_others(os.environ["DATABASE_URL"], connection.settings_dict["NAME"])


def disconnect_others(address: str, database: str) -> None:
    """End the sessions in this database, but for the one that does so."""
    with psycopg.connect(address) as only:
        only.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
            [database],
        )


def migrated() -> str:
    """Name the database with Amber's tables and nobody in them; the first who asks makes it."""
    name = os.environ[VARIABLE]
    with _server() as server:
        server.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        found = server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if not found.fetchone():
            draft = own_database(f"{name}_draft")
            _migrate(draft)
            with psycopg.connect(draft) as made, made.cursor() as cursor:
                database_roles.make_roles(cursor, {})
                database_roles.arrange(cursor)
            server.execute(f"ALTER DATABASE {name}_draft RENAME TO {name}".encode())
    return name


def own_database(name: str, template: str = EMPTY) -> str:
    """A new database, a copy of another; its address."""
    assert re.fullmatch(r"\w+", name)
    with _server() as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))


def drop_database(name: str) -> None:
    with _server() as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


def _migrate(url: str) -> None:
    """In a process of its own: the connection of this one is pytest-django's."""
    code = (
        "from amber.lib.workers import garbage; garbage.put_off(); import django; django.setup();"
        " from amber.setup.migration import migrate; migrate()"
    )
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"DATABASE_URL": url}, check=True)


def _server() -> "psycopg.Connection[Any]":
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
