"""Apply migrations: Django's, which a new database gets four times as fast.

While Django applies migrations it keeps classes of all models, and makes those anew that refer to the one
a migration changes: of Amber's nearly all, 6,900 for 100 migrations. A new database has no rows for
them to read, so here the changed one alone is made anew; what runs Python gets all of them, as from
Django. A test compares the two databases. An existing one is Django's own affair.
"""

import time
from collections.abc import Iterable
from typing import Any, Final

import structlog
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.core.management.sql import emit_post_migrate_signal, emit_pre_migrate_signal
from django.db import OperationalError, connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState
from psycopg.errors import LockNotAvailable

logger = structlog.get_logger(__name__)

LOCK_SECONDS: Final = 3
"""Below AMBER_LOCK_SECONDS: no request fails because a migration has waited."""
STATEMENT_SECONDS: Final = 60
PAUSES_SECONDS: Final = (1, 2, 4, 8, 15, 30)
BLOCKED: Final = (
    "A migration waited for a lock that others hold, and gave up. Nothing is half done: run this again. "
    "docs/operations.md (When a migration waits) says how to find who holds the lock."
)
_UNFINISHED_SQL: Final = (
    "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s)) AND NOT indisvalid"
)


class _PatientExecutor(MigrationExecutor):
    """Sets each migration's limits: one that builds indexes concurrently locks nobody out, and may take hours."""

    def apply_migration(self, state: Any, migration: Migration, *args: Any, **kwargs: Any) -> Any:
        if _is_concurrent(migration):
            _limit(lock_seconds=0, statement_seconds=0)
            _drop_unfinished(migration)
        else:
            _limit(lock_seconds=LOCK_SECONDS, statement_seconds=STATEMENT_SECONDS)
        return super().apply_migration(state, migration, *args, **kwargs)


class _NewDatabaseState(ProjectState):
    """A state whose other classes stay as they are. Django calls that delayed, and makes all of them anew
    where a migration runs Python."""

    def clone(self) -> "_NewDatabaseState":
        return _for_new_database(super().clone())

    def reload_model(self, app_label: str, model_name: str, delay: bool = False) -> None:
        self.reload_models([(app_label, model_name)])

    def reload_models(self, models: Iterable[tuple[str, str]], delay: bool = True) -> None:
        if "apps" in self.__dict__:  # hasattr would make it
            self.is_delayed = True
            self._reload(set(models))  # type: ignore[attr-defined]


class _NewDatabaseExecutor(_PatientExecutor):
    def _create_project_state(self, with_applied_migrations: bool = False) -> ProjectState:
        made: ProjectState = super()._create_project_state(with_applied_migrations)  # type: ignore[misc]
        return _for_new_database(made)


class MigrationBlocked(Exception):
    """A migration waited for a lock, and gave up; the message says what to do."""


def migrate() -> None:
    """Apply waiting migrations. With none it skips Django's signals, half of the time.

    A migration that waits for a lock holds up everybody who comes after it, so it gives up after LOCK_SECONDS, and
    tries again after a pause. Raises MigrationBlocked in the end; what was applied before stays applied.
    """
    executor = _PatientExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return
    if executor.loader.applied_migrations:
        _migrate_in_use()
    else:
        _apply(_NewDatabaseExecutor(connection))
    connection.close()


def _migrate_in_use() -> None:
    for pause_seconds in (*PAUSES_SECONDS, None):
        try:
            _apply(_PatientExecutor(connection))
            return
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
            if pause_seconds is None:
                raise MigrationBlocked(BLOCKED) from error
        logger.warning("migration_waits", seconds=pause_seconds)
        connection.close()
        time.sleep(pause_seconds)


def _apply(executor: MigrationExecutor) -> None:
    """Apply what waits, with the signals that Django's command sends."""
    targets = executor.loader.graph.leaf_nodes()
    plan = executor.migration_plan(targets)
    before = executor._create_project_state(with_applied_migrations=True)  # type: ignore[attr-defined]
    about: dict[str, Any] = {
        "verbosity": 0,
        "interactive": False,
        "db": connection.alias,
        "plan": plan,
    }
    emit_pre_migrate_signal(**about, apps=before.apps)
    after = executor.migrate(targets, plan, state=before.clone())
    after.clear_delayed_apps_cache()
    emit_post_migrate_signal(**about, apps=after.apps)


def _is_concurrent(migration: Migration) -> bool:
    return bool(migration.operations) and all(
        isinstance(each, (AddIndexConcurrently, RemoveIndexConcurrently))
        for each in migration.operations
    )


def _limit(*, lock_seconds: int, statement_seconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{lock_seconds}s'")
        cursor.execute(f"SET statement_timeout = '{statement_seconds}s'")


def _drop_unfinished(migration: Migration) -> None:
    """Drop indexes that an interrupted build left: they are invalid, and their names are taken."""
    for operation in migration.operations:
        if isinstance(operation, AddIndexConcurrently):
            with connection.cursor() as cursor:
                cursor.execute(_UNFINISHED_SQL, [operation.index.name])
                if cursor.fetchone():
                    name = connection.ops.quote_name(operation.index.name)
                    cursor.execute(f"DROP INDEX CONCURRENTLY {name}")


def _for_new_database(state: ProjectState) -> _NewDatabaseState:
    state.__class__ = _NewDatabaseState
    assert isinstance(state, _NewDatabaseState)
    return state
