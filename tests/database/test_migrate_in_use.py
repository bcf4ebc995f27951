"""A database in use is migrated so that nobody waits for long: limits, another try, unfinished indexes."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import OperationalError, connection, migrations, models
from django.db.migrations.state import ModelState, ProjectState
from psycopg.errors import LockNotAvailable

from amber.setup import migration as module
from amber.setup.migration import MigrationBlocked, _PatientExecutor

pytestmark = pytest.mark.django_db(transaction=True)

TABLE = "operations_sheet"
INDEX = models.Index(fields=["name"], name="sheet_name")


@pytest.fixture
def sheet() -> Iterator[ProjectState]:
    """A table that only this test knows, with two equal rows."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, name varchar(9))")
        cursor.execute(f"INSERT INTO {TABLE} VALUES (1, 'a'), (2, 'a')")
    state = ProjectState()
    fields: list[tuple[str, Any]] = [
        ("id", models.BigIntegerField(primary_key=True)),
        ("name", models.CharField(max_length=9)),
    ]
    state.add_model(ModelState("operations", "sheet", fields))
    yield state
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {TABLE}")
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # its sessions keep the limits


def apply(state: ProjectState, *operations: Any, atomic: bool = True) -> None:
    migration: Any = migrations.Migration("made_up", "operations")
    migration.operations, migration.atomic = list(operations), atomic
    executor: Any = _PatientExecutor(connection)
    executor.recorder = SimpleNamespace(record_applied=lambda *_: None)
    executor.apply_migration(state, migration)


def shown() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
        )
        return list(cursor.fetchone())


def test_a_migration_that_locks_gives_up_soon(sheet):
    seen: list[list[str]] = []
    apply(sheet, migrations.RunPython(lambda *_: seen.append(shown())))
    assert seen == [["3s", "1min"]]


def test_what_is_built_concurrently_may_take_its_time_and_follows_an_unfinished_build(sheet):
    with pytest.raises(psycopg.errors.UniqueViolation), connection.cursor() as cursor:
        cursor.cursor.execute(f"CREATE UNIQUE INDEX CONCURRENTLY sheet_name ON {TABLE} (name)")
    apply(sheet, AddIndexConcurrently("sheet", INDEX), atomic=False)
    assert shown() == ["0", "0"]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid, indisunique FROM pg_index WHERE indexrelid = 'sheet_name'::regclass"
        )
        assert cursor.fetchone() == (True, False)


def test_who_waits_for_a_lock_tries_again_once_it_is_free(sheet, monkeypatch):
    monkeypatch.setattr(module, "LOCK_SECONDS", 1)
    added = migrations.AddField("sheet", "note", models.TextField(null=True))
    tries: list[str] = []

    def try_it(_: object) -> None:
        tries.append("tried")
        apply(sheet.clone(), added)

    monkeypatch.setattr(module, "_apply", try_it)
    own = connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}
    with psycopg.connect(**own) as other:
        other.execute(f"SELECT FROM {TABLE}".encode())
        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda _: other.rollback()))
        module._migrate_in_use()
    assert tries == ["tried", "tried"]


def test_it_says_in_the_end_that_it_is_blocked_and_other_faults_at_once(monkeypatch):
    fault: list[BaseException] = [LockNotAvailable()]
    pauses: list[float] = []

    def fail(_: object) -> None:
        raise OperationalError from fault[0]

    monkeypatch.setattr(module, "_apply", fail)
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=pauses.append))
    with pytest.raises(MigrationBlocked, match="run this again"):
        module._migrate_in_use()
    assert tuple(pauses) == module.PAUSES_SECONDS
    fault[0] = psycopg.OperationalError()
    with pytest.raises(OperationalError):
        module._migrate_in_use()
    assert tuple(pauses) == module.PAUSES_SECONDS
