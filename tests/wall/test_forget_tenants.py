"""Follow the tenant through transactions and a pool: what one said, the next does not inherit.

The connections are Django's own, logged in as the app, from a pool of one: whoever comes next gets
the very connection that the last one left.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from django.db import DataError, ProgrammingError, connections, transaction
from psycopg.conninfo import conninfo_to_dict

from amber.database_roles import APP
from amber.lib.database.tenant import NOBODY, Tenant, act_as, as_tenant
from amber.lib.postgres.base import TENANT_ROLE, DatabaseWrapper
from tests.wall.database import WalledDatabase
from tests.wall.rows import ALICE, BOB, GUEST, MALLORY, Someone

ALIAS = "as_the_app"
CHATS = "SELECT id FROM chats_chat"
SETTINGS = ("organization", "user")

SOMEBODYS_ID = "0198c0de-0000-7000-8000-0000000000ab"


def tenant_of(someone: Someone) -> Tenant:
    return Tenant(someone.organization_id, someone.user_id, someone.guest_id)


@pytest.fixture
def login(
    walled: WalledDatabase, monkeypatch: pytest.MonkeyPatch, django_db_blocker: Any
) -> Iterator[DatabaseWrapper]:
    at = conninfo_to_dict(walled.url)
    settings: dict[str, Any] = deepcopy(connections["default"].settings_dict)
    settings.pop(TENANT_ROLE, None)
    settings |= {"USER": APP, "NAME": at["dbname"], "HOST": at.get("host", "")}
    settings["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 1, "timeout": 10}
    monkeypatch.setitem(connections.settings, ALIAS, settings)
    with django_db_blocker.unblock():
        wrapper: Any = connections[ALIAS]
        yield wrapper
        wrapper.close()
        wrapper.close_pool()
        del connections[ALIAS]


def ask(login: DatabaseWrapper, statement: str = CHATS, parameters: Any = None) -> list[Any]:
    with login.cursor() as cursor:
        cursor.execute(statement, parameters)
        return [row[0] for row in cursor.fetchall()]


def settings_held(login: DatabaseWrapper) -> list[str]:
    """What the connection itself holds: asked past Django, so that nothing is said ahead."""
    connection: Any = login.connection
    names = ", ".join(f"current_setting('amber.{name}', true)" for name in SETTINGS)
    return list(connection.execute(f"SELECT {names}").fetchone())


def test_each_sees_their_own_one_after_the_other(login, walled):
    """With one statement each, and through a pool that has one connection."""
    for someone in (ALICE, MALLORY, BOB, GUEST, ALICE):
        with as_tenant(tenant_of(someone)):
            assert set(ask(login)) == walled.rows.visible_to(someone, "chats_chat")
            assert set(ask(login, f"{CHATS} WHERE id <> %s", [someone.organization_id])) == (
                walled.rows.visible_to(someone, "chats_chat")
            )
        login.close()


def test_they_change_in_the_middle_of_a_transaction(login, walled):
    with transaction.atomic(using=ALIAS):
        for someone in (ALICE, MALLORY, ALICE):
            act_as(tenant_of(someone))
            assert set(ask(login)) == walled.rows.visible_to(someone, "chats_chat")


@pytest.mark.parametrize("tenant", [None, NOBODY, Tenant(None, is_whole=True)])
def test_nobody_is_refused(login, tenant):
    act_as(tenant)
    with pytest.raises(DataError, match="uuid"):
        ask(login)


def committed(login: DatabaseWrapper) -> None:
    with transaction.atomic(using=ALIAS):
        ask(login)


def rolled_back(login: DatabaseWrapper) -> None:
    with transaction.atomic(using=ALIAS):
        ask(login)
        transaction.set_rollback(True, using=ALIAS)


def failed(login: DatabaseWrapper) -> None:
    with pytest.raises(ProgrammingError), transaction.atomic(using=ALIAS):
        ask(login)
        ask(login, "SELECT no_such_column")


def failed_at_first(login: DatabaseWrapper) -> None:
    with pytest.raises(ProgrammingError), transaction.atomic(using=ALIAS):
        ask(login, "SELECT no_such_column")


def failed_outside_of_a_transaction(login: DatabaseWrapper) -> None:
    with pytest.raises(ProgrammingError):
        ask(login, "SELECT no_such_column")


def rolled_back_inside(login: DatabaseWrapper) -> None:
    with transaction.atomic(using=ALIAS):
        with pytest.raises(ProgrammingError), transaction.atomic(using=ALIAS):
            ask(login)
            ask(login, "SELECT no_such_column")
        ask(login)


ENDINGS = (
    committed,
    rolled_back,
    failed,
    failed_at_first,
    failed_outside_of_a_transaction,
    rolled_back_inside,
    ask,
)


@pytest.mark.parametrize("end", ENDINGS)
def test_nothing_of_them_is_left(login, end):
    """Neither on the connection nor for whoever takes it from the pool."""
    with as_tenant(tenant_of(ALICE)):
        end(login)
    assert settings_held(login) == ["", ""]
    with pytest.raises(DataError, match="uuid"):
        ask(login)
    login.close()
    with pytest.raises(DataError, match="uuid"):
        ask(login)
    assert settings_held(login) == ["", ""]


@pytest.mark.parametrize("end", ENDINGS)
def test_the_next_is_known_after_whatever_happened(login, walled, end):
    with as_tenant(tenant_of(ALICE)):
        end(login)
    with as_tenant(tenant_of(MALLORY)):
        assert set(ask(login)) == walled.rows.visible_to(MALLORY, "chats_chat")


def test_a_savepoint_taken_back_takes_back_no_tenant(login, walled):
    """The settings made since the savepoint are lost with it; they are then said again."""
    with as_tenant(tenant_of(ALICE)), transaction.atomic(using=ALIAS):
        with pytest.raises(ProgrammingError), transaction.atomic(using=ALIAS):
            assert ask(login)
            ask(login, "SELECT no_such_column")
        assert set(ask(login)) == walled.rows.visible_to(ALICE, "chats_chat")
    with transaction.atomic(using=ALIAS):
        act_as(tenant_of(ALICE))
        ask(login)
        point = transaction.savepoint(using=ALIAS)
        act_as(tenant_of(MALLORY))
        assert set(ask(login)) == walled.rows.visible_to(MALLORY, "chats_chat")
        transaction.savepoint_rollback(point, using=ALIAS)
        assert set(ask(login)) == walled.rows.visible_to(MALLORY, "chats_chat")


def test_many_rows_and_copies_say_the_tenant_too(login):
    with as_tenant(tenant_of(ALICE)), transaction.atomic(using=ALIAS), login.cursor() as cursor:
        cursor.executemany("UPDATE chats_chat SET name = %s", [["x"], ["y"]])
        with cursor.copy("COPY chats_chat (id) TO STDOUT") as copied:
            assert len(list(copied.rows())) == 1
        transaction.set_rollback(True, using=ALIAS)


@pytest.mark.parametrize("guest_id", ["*", SOMEBODYS_ID, SOMEBODYS_ID.upper()])
def test_no_guest_is_taken_for_a_user(guest_id):
    """One setting names users and guests: ids of either kind must not be of the other."""
    with pytest.raises(ValueError, match="guest's id"):
        Tenant(ALICE.organization_id, guest_id=guest_id)


def test_a_tenant_s_words_are_no_sql(login, walled):
    """A guest's id comes from a signed token; a hostile one would still be a mere word."""
    hostile = Tenant(ALICE.organization_id, guest_id="' , true); SET ROLE amber_owner; --%s")
    with as_tenant(hostile):
        assert ask(login) == []
        assert ask(login, f"{CHATS} WHERE id = %s", [walled.rows.ids["chats_chat"]["alice"]]) == []
        assert ask(login, "SELECT current_user") == [APP]
