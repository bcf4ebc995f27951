"""Apply migrations: Django's, which a new database gets four times as fast.

While Django applies migrations it keeps classes of all models, and makes those anew that refer to the one
a migration changes: of Amber's nearly all, 6,900 for 100 migrations. A new database has no rows for
them to read, so here the changed one alone is made anew; what runs Python gets all of them, as from
Django. A test compares the two databases. An existing one is Django's own affair.
"""

from collections.abc import Iterable
from typing import Any

from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal, emit_pre_migrate_signal
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState


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


class _NewDatabaseExecutor(MigrationExecutor):
    def _create_project_state(self, with_applied_migrations: bool = False) -> ProjectState:
        made: ProjectState = super()._create_project_state(with_applied_migrations)  # type: ignore[misc]
        return _for_new_database(made)


def migrate() -> None:
    """Apply waiting migrations. With none it skips Django's signals, half of the time."""
    executor = _NewDatabaseExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return
    with connection.cursor() as cursor:
        # Rather fail than block everybody's queries while waiting for a lock.
        cursor.execute("SET lock_timeout = '3s'")
        cursor.execute("SET statement_timeout = '60s'")
    if executor.loader.applied_migrations:
        call_command("migrate", verbosity=0)
    else:
        _migrate_new(executor, plan)
    connection.close()


def _migrate_new(executor: MigrationExecutor, plan: list[Any]) -> None:
    """Apply all migrations to an empty database, with the signals that Django's command sends."""
    before = executor._create_project_state(with_applied_migrations=True)  # type: ignore[attr-defined]
    about: dict[str, Any] = {
        "verbosity": 0,
        "interactive": False,
        "db": connection.alias,
        "plan": plan,
    }
    emit_pre_migrate_signal(**about, apps=before.apps)
    after = executor.migrate(executor.loader.graph.leaf_nodes(), plan, state=before.clone())
    after.clear_delayed_apps_cache()
    emit_post_migrate_signal(**about, apps=after.apps)


def _for_new_database(state: ProjectState) -> _NewDatabaseState:
    state.__class__ = _NewDatabaseState
    assert isinstance(state, _NewDatabaseState)
    return state
