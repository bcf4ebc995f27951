"""Cut the ledger up inside of a transaction that is taken back: tables of other tests stay whole."""

from datetime import date, timedelta
from importlib import import_module
from io import StringIO
from uuid import UUID, uuid4

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.core.management import CommandError, call_command
from django.db import IntegrityError, ProgrammingError, connection, models, transaction
from django.utils import timezone

from amber import database_roles
from amber.backups.backup import count_rows
from amber.lib.database.tenant import Tenant, as_tenant
from amber.lib.ids import least_id_at, new_id
from operations.partitions import bound, conversion, retention, upkeep
from operations.partitions.catalog import LEDGER, REST, is_partitioned, list_partitions, name_of
from operations.partitions.months import (
    add_months,
    first_id,
    month_of,
    month_of_id,
    months_between,
    start_of,
)
from providers.models import UsageRecord, made_between
from tests.fixtures.databases import ROOT

pytestmark = pytest.mark.django_db


def this_month():
    return month_of(timezone.now())


def write(persona, at=None, **fields):
    """A row of the ledger at that time, as its id says, too."""
    at = at or timezone.now()
    pk = UUID(int=least_id_at(at).int | (uuid4().int & 0xFFFF))
    row = UsageRecord.objects.create(
        id=pk, organization=persona.organization, user=persona.user, model="m", **fields
    )
    UsageRecord.objects.filter(pk=pk).update(created_at=at)
    return row


def settle():
    """Check deferred keys: a table with checks that wait cannot be changed."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def rows_of(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


def partition(**options):
    out = StringIO()
    settle()
    call_command("partition", stdout=out, **options)
    return out.getvalue()


def end_of(part):
    """The first month that a partition does not hold any more."""
    assert part.high is not None
    return month_of_id(part.high)


def held_by(name):
    return {pk for (pk,) in rows_of(f"SELECT id FROM ONLY {name}")}


@pytest.fixture
def parted(alice):
    """The rows of three months, in partitions: from before the conversion, of now, and of later."""
    old = write(alice, start_of(this_month()) - timedelta(days=90))
    now = write(alice)
    partition()
    later = write(alice, start_of(end_of(list_partitions()[0])) + timedelta(days=3))
    return old, now, later


def test_months_are_reckoned():
    assert add_months(date(2026, 11, 1), 3) == date(2027, 2, 1)
    assert add_months(date(2026, 1, 1), -1) == date(2025, 12, 1)
    assert len(list(months_between(date(2025, 6, 1), date(2026, 9, 1)))) == 15
    for month in months_between(date(2023, 11, 1), date(2025, 3, 1)):
        assert month_of_id(first_id(month)) == month
        assert month_of_id(UUID(int=first_id(month).int - (1 << 80))) == add_months(month, -1)
    assert month_of_id(new_id()) == this_month()


def test_a_plan_and_a_status_change_nothing(alice):
    write(alice)
    assert "1. Check new rows." in partition(plan=True)
    assert "is one table." in partition(status=True)
    bound.declare_bound(timezone.now())
    assert "1. Check new rows. (Done.)" in partition(plan=True)
    assert "run the command again" in partition(status=True)
    assert not is_partitioned()


def test_all_rows_are_kept_and_new_ones_find_their_month(parted):
    old, now, later = parted
    history, month, *_ = list_partitions()
    assert held_by(history.name) == {old.pk, now.pk}
    assert held_by(month.name) == {later.pk}
    assert set(UsageRecord.objects.values_list("pk", flat=True)) == {old.pk, now.pk, later.pk}
    assert list_partitions()[-1].name == REST
    assert "Verified: of 2 rows 2 are there" in partition()
    assert "in partitions already" in partition(plan=True)
    assert month.name in partition(status=True)


def test_the_new_table_is_as_the_old_one_was(alice):
    before = described(LEDGER)
    partition()
    assert described(LEDGER) == before
    with pytest.raises(IntegrityError), transaction.atomic():
        UsageRecord.objects.create(organization=alice.organization, model="m", prompt_tokens=-1)


def described(table):
    """Columns, indexes, constraints, policies and rights, as the catalogs write them."""
    about = (
        "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns"
        " WHERE table_name = %s ORDER BY 1",
        "SELECT indexname, replace(indexdef, 'ON ONLY', 'ON') FROM pg_indexes WHERE tablename = %s ORDER BY 1",
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass ORDER BY 1",
        "SELECT policyname, permissive, cmd, qual, with_check FROM pg_policies WHERE tablename = %s ORDER BY 1",
        "SELECT relrowsecurity, relforcerowsecurity, relowner, relacl FROM pg_class WHERE oid = %s::regclass",
    )
    return [rows_of(statement, table) for statement in about]


@pytest.mark.parametrize("done", ["nothing", "declared", "proven", "places changed"])
def test_it_goes_on_where_it_was_killed(alice, done):
    write(alice)
    settle()
    if done != "nothing":
        bound.declare_bound(timezone.now())
    found = bound.find_bound()
    if found is not None and done != "declared":
        bound.prove_bound(found)
        found = bound.find_bound()
    if found is not None and done == "places changed":
        conversion._change_places(found)
    assert "of 1 rows 1 are there" in partition()
    assert len(list_partitions()) > upkeep.MONTHS_AHEAD


def test_a_bound_that_came_near_is_declared_anew(alice):
    settle()
    bound.declare_bound(timezone.now() - timedelta(days=80))
    partition()
    highest = list_partitions()[0].high
    assert highest is not None
    assert highest > least_id_at(timezone.now() + bound.MARGIN)


def test_an_abandoned_bound_is_dropped_in_time(alice):
    settle()
    now = timezone.now()
    bound.declare_bound(now)
    upkeep.tend_partitions()
    found = bound.find_bound()
    assert found is not None
    upkeep._drop_abandoned_bound(start_of(found.month) - bound.ABANDONED + timedelta(hours=1))
    assert bound.find_bound() is None


def test_ids_that_are_no_times_are_refused(alice):
    UsageRecord.objects.create(
        id=UUID(int=(1 << 128) - 1), organization=alice.organization, model="m"
    )
    with pytest.raises(CommandError, match="ids that are no times"):
        partition()
    assert bound.find_bound() is None
    assert not is_partitioned()


def test_the_wall_holds_on_the_table_and_its_partitions_are_shut(parted, alice, mallory):
    theirs = write(mallory)
    settle()
    acme = Tenant(alice.organization.pk, is_whole=True)
    names = [part.name for part in list_partitions()]
    with as_tenant(acme):
        assert set(UsageRecord.objects.values_list("pk", flat=True)) == {row.pk for row in parted}
        assert UsageRecord.objects.filter(pk=theirs.pk).update(cost=1) == 0
        assert UsageRecord.objects.filter(pk=parted[0].pk).update(cost=1) == 1
        settle()
        for name in names:
            for statement in (f"SELECT FROM {name}", f"DELETE FROM {name}"):
                with pytest.raises(ProgrammingError, match="denied"), transaction.atomic():
                    rows_of(statement)
    with connection.cursor() as cursor:
        cursor.execute(f"GRANT SELECT ON {', '.join(names)} TO amber_app")
    with as_tenant(acme):  # a right alone would show nothing either
        assert [row for name in names for row in rows_of(f"SELECT id FROM {name}")] == []


def test_roles_are_arranged_without_a_right_to_partitions(parted):
    with connection.cursor() as cursor:
        assert database_roles.is_in_order(cursor)
        name = list_partitions()[0].name
        cursor.execute(f"GRANT SELECT ON {name} TO amber_app")
        assert not database_roles.is_in_order(cursor)
        database_roles.arrange(cursor)
        assert database_roles.is_in_order(cursor)
        cursor.execute("SELECT has_table_privilege('amber_app', %s, 'SELECT')", [name])
        assert cursor.fetchone() == (False,)


def test_a_backup_counts_a_row_once(parted):
    connection.ensure_connection()
    counts = count_rows(connection.connection)
    assert counts[LEDGER] == 3
    assert not [name for name in counts if name.startswith(f"{LEDGER}_")]


def test_months_are_made_ahead_and_strays_are_moved_to_them(parted, alice, monkeypatch):
    end = end_of(list_partitions()[-2])
    stray = write(alice, start_of(end) + timedelta(days=1))
    settle()
    assert held_by(REST) == {stray.pk}
    assert upkeep.count_strays() == 1
    with pytest.raises(CommandError, match="1 rows or more have no month"):
        partition(status=True)
    made = list(upkeep.make_missing(start_of(add_months(end, -2))))
    assert made == [name_of(end), name_of(add_months(end, 1))]
    assert (held_by(REST), held_by(name_of(end))) == (set(), {stray.pk})
    upkeep.tend_partitions()
    assert list(upkeep.make_missing(timezone.now())) == []


def test_old_partitions_are_dropped_and_old_rows_deleted(parted, alice, settings):
    _, now, later = parted
    settle()
    retention.forget_usage()
    assert UsageRecord.objects.count() == 3, "all are kept unless the setting says so"
    settings.AMBER_USAGE_MONTHS = 1
    retention.forget_usage()
    assert set(UsageRecord.objects.values_list("pk", flat=True)) == {now.pk, later.pk}
    history = list_partitions()[0]
    retention._drop_partitions(end_of(history))
    assert list_partitions()[0].name != history.name
    assert set(UsageRecord.objects.values_list("pk", flat=True)) == {later.pk}


def test_the_role_of_the_periodic_jobs_may_make_and_drop_partitions(parted, settings):
    settings.AMBER_USAGE_MONTHS = 1
    settle()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL ROLE amber_system")
        made = list(upkeep.make_missing(start_of(add_months(this_month(), 4))))
        history = list_partitions()[0]
        retention._drop_partitions(end_of(history))
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("amber_system",)
        cursor.execute("RESET ROLE")
        assert database_roles.is_in_order(cursor)
    names = [part.name for part in list_partitions()]
    assert made
    assert set(made) <= set(names)
    assert history.name not in names


def test_a_plain_table_forgets_old_rows_too(alice, settings):
    settings.AMBER_USAGE_MONTHS = 2
    kept = write(alice, start_of(add_months(this_month(), -2)))
    write(alice, start_of(add_months(this_month(), -2)) - timedelta(seconds=1))
    retention.forget_usage()
    assert list(UsageRecord.objects.values_list("pk", flat=True)) == [kept.pk]


def test_reports_look_only_into_the_months_they_are_about(parted):
    history, month, following, *_ = list_partitions()
    start = start_of(end_of(history))
    rows = UsageRecord.objects.filter(
        made_between(start + timedelta(days=1), start + timedelta(days=8))
    )
    plan = rows.explain()
    assert month.name in plan
    assert following.name not in plan
    assert REST not in plan
    assert "until" not in plan


def test_no_later_migration_makes_indexes_of_the_ledger_concurrently():
    """Postgres cannot, for a table in partitions: `AddIndex` makes them."""
    found = [
        (path.name, type(operation).__name__)
        for path in sorted((ROOT / "providers" / "migrations").glob("0*.py"))
        for operation in import_module(f"providers.migrations.{path.stem}").Migration.operations
        if isinstance(operation, AddIndexConcurrently | RemoveIndexConcurrently)
        and operation.model_name == "usagerecord"
    ]
    assert found == [("0004_usage_time.py", "AddIndexConcurrently")]


def test_later_migrations_change_it_as_any_table(parted):
    """The editor of a migration knows of no partitions."""
    settle()
    field = models.IntegerField(default=7, db_default=7)
    field.set_attributes_from_name("flavour")
    field.model = UsageRecord
    index = models.Index(fields=["kind"], name="usage_kind")
    with connection.schema_editor() as editor:
        editor.add_field(UsageRecord, field)
        editor.add_index(UsageRecord, index)
        editor.remove_index(UsageRecord, UsageRecord._meta.indexes[0])
        editor.remove_index(UsageRecord, index)
    assert rows_of(f"SELECT DISTINCT flavour FROM {LEDGER}") == [(7,)]
    for part in list_partitions():
        assert len(rows_of("SELECT FROM pg_indexes WHERE tablename = %s", part.name)) == len(
            rows_of("SELECT FROM pg_indexes WHERE tablename = %s", LEDGER)
        )
