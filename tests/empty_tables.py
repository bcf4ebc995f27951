"""Empties the database after a test that commits; a pytest plugin.

Django's own way truncates every table and then makes all content types and permissions again,
which costs more than most such tests do. Here only tables that hold rows are emptied, and content
types and permissions stay as `migrate` left them.
"""

from functools import cache

import pytest
from django.db import connection, transaction
from django.test import TransactionTestCase

KEPT = {"django_content_type", "auth_permission"}
CASCADED = {"accounts_auditevent", "accounts_auditchain"}
"""Go with their organization, and in no other way."""
TRUNCATED = {"libraries_documentchunk"}
"""Tests look at its size and its vector indexes, where deleted rows remain for a while."""


@pytest.hookimpl
def pytest_configure() -> None:
    def tear_down(test: TransactionTestCase) -> None:
        empty_tables()

    TransactionTestCase._fixture_teardown = tear_down  # type: ignore[attr-defined]


def empty_tables() -> None:
    """Delete all rows but those of KEPT.

    The lock waits for whoever still writes, as TRUNCATE does: a thread that outlives its test
    leaves nothing to the next one. References are checked at the commit, so any order will do.
    """
    lock, find = _statements()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(lock)
        # To plan this anew after each test would cost more than all the rest.
        cursor.cursor.execute(find, prepare=True)
        filled = {name for (name,) in cursor.fetchall()}
        for name in sorted(filled - CASCADED, key=lambda name: name not in TRUNCATED):
            verb = "TRUNCATE" if name in TRUNCATED else "DELETE FROM"
            cursor.execute(f'{verb} "{name}"')


@cache
def _statements() -> tuple[str, str]:
    """One that locks all tables against writers, one that names those with rows."""
    names = set(connection.introspection.django_table_names(only_existing=True)) - KEPT
    tables = ", ".join(f'"{name}"' for name in sorted(names))
    find = " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS (SELECT FROM \"{name}\")" for name in sorted(names)
    )
    return f"LOCK TABLE {tables} IN SHARE MODE", find
