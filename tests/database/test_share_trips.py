"""Statements that are sent to Postgres together."""

from contextlib import nullcontext
from uuid import UUID

import pytest
from django.db import DataError, IntegrityError, connection, transaction

from accounts.models import Organization
from amber.lib.database.round_trips import ask_ahead, in_one_trip

pytestmark = pytest.mark.django_db(transaction=True)


def test_how_many_rows_were_changed_is_known_inside_a_trip(alice):
    mine = Organization.objects.filter(pk=alice.organization.pk)
    with in_one_trip(), transaction.atomic():
        assert mine.update(name="New") == 1
        assert Organization.objects.filter(pk=UUID(int=0)).update(name="Nobody's") == 0
    assert mine.get().name == "New"


def test_a_transaction_that_shares_a_trip_is_committed_with_it(alice):
    called: list[bool] = []
    with in_one_trip():
        with transaction.atomic():
            Organization.objects.filter(pk=alice.organization.pk).update(name="New")
            transaction.on_commit(lambda: called.append(True))
        assert called == [True]
        assert not connection.in_atomic_block


def test_what_postgres_refuses_is_an_error_of_djangos_and_undone(alice):
    def refused() -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE accounts_organization SET name = 'x'")
            cursor.execute("UPDATE accounts_organization SET id = NULL")

    with pytest.raises(IntegrityError), in_one_trip(), transaction.atomic():
        refused()
    with pytest.raises(IntegrityError), transaction.atomic(), in_one_trip():
        refused()
    with pytest.raises(IntegrityError), in_one_trip():
        refused()
    assert not Organization.objects.filter(name="x").exists()


@pytest.mark.parametrize("within", [nullcontext, transaction.atomic])
def test_postgres_works_on_what_is_asked_ahead_while_the_block_goes_on(alice, within):
    slow_sql = "SELECT %s || x FROM pg_sleep(0.01), unnest(ARRAY['b', 'c']) AS x"
    with within():
        with ask_ahead(slow_sql, ["a"]) as rows:
            assert rows == []
        assert rows == [("ab",), ("ac",)]
        with ask_ahead(slow_sql, ["a"]) as rows:
            assert Organization.objects.filter(pk=alice.organization.pk).exists()
        assert len(rows) == 2


def test_what_postgres_refuses_of_what_is_asked_ahead_is_an_error_of_djangos():
    with pytest.raises(DataError), ask_ahead("SELECT 1 / %s", [0]):
        pass
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
