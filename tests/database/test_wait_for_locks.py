"""A web request waits for a lock, but not for ever: one ALTER TABLE must not hold up everybody."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest
from django.db import OperationalError, connection, connections, transaction

from amber.lib.database.tenant import NOBODY, Tenant, across_tenants, as_tenant
from amber.lib.postgres.base import LOCK_SECONDS
from tests.fixtures.personas import Persona, api

pytestmark = pytest.mark.django_db(transaction=True)

SHOW = "SELECT current_setting('lock_timeout')"
TABLE = "LOCK TABLE chats_chat IN ACCESS EXCLUSIVE MODE"
"""As an ALTER TABLE has it."""


def limit(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    for alias in connections:
        monkeypatch.setitem(connections[alias].settings_dict, LOCK_SECONDS, seconds)


@contextmanager
def held(statement: str, *parameters: object) -> Iterator[psycopg.Connection]:
    """Another session that holds a lock inside of the block, unless it is rolled back before."""
    with psycopg.connect(
        **connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}
    ) as other:
        assert other.execute(statement.encode(), parameters).rowcount != 0
        yield other
        other.rollback()


def shown() -> str:
    with connection.cursor() as cursor:
        cursor.execute(SHOW)
        return str(cursor.fetchone()[0])


def test_a_blocked_request_is_told_when_to_come_again(
    alice: Persona, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, 0.2)
    with held(TABLE):
        answer = api(alice).get("/api/v1/chats/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.json()["error"]["code"] == "unavailable"
    assert answer.json()["error"]["retryable"] is True
    assert api(alice).get("/api/v1/chats/").status_code == 200


def test_a_row_that_a_turn_locks_for_a_moment_is_waited_for(
    alice: Persona, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, 20)
    chat = api(alice).post("/api/v1/chats/", {}, content_type="application/json").json()
    with held("SELECT FROM chats_chat WHERE id = %s FOR NO KEY UPDATE", chat["id"]) as other:
        freed = threading.Event()

        def free() -> None:
            freed.set()
            other.rollback()

        release = threading.Timer(0.3, free)
        release.start()
        address = f"/api/v1/chats/{chat['id']}/"
        answer = api(alice).patch(address, {"name": "Later"}, content_type="application/json")
        assert freed.is_set(), "The request did not wait for the lock."
        release.join()
    assert answer.status_code == 200, answer.content


def test_every_transaction_knows_the_limit_on_both_connections(monkeypatch):
    limit(monkeypatch, 7)
    for whose in (as_tenant(NOBODY), across_tenants()):
        with whose:
            assert shown() == "7s"
            with transaction.atomic():
                assert (shown(), shown()) == ("7s", "7s")
    limit(monkeypatch, 0)
    for whose in (as_tenant(NOBODY), across_tenants()):
        with whose:
            assert shown() == "0"


def test_a_transaction_keeps_the_limit_that_it_has_set_itself(monkeypatch):
    limit(monkeypatch, 7)
    with as_tenant(NOBODY), transaction.atomic():
        assert shown() == "7s"
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '100ms'")
        with as_tenant(Tenant(uuid4())):
            assert shown() == "100ms"


def test_a_limit_said_in_a_savepoint_that_was_taken_back_is_said_again(monkeypatch):
    limit(monkeypatch, 7)
    with as_tenant(NOBODY), transaction.atomic():
        with pytest.raises(OperationalError), transaction.atomic():
            shown()
            raise OperationalError
        assert shown() == "7s"
