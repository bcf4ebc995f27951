"""Look whether migrations let the release before go on working: `python -m tests.house.migration_rules`.

While an installation is upgraded, web processes and workers of two releases run on one schema, and nobody may wait
for a lock for long. Each rule is a function of an operation and of the models before it. A migration that breaks a
rule for a good reason says so, in an attribute of its class:

    excused = {"runs_code": "Reads a table of a dozen rows."}

docs/operations.md ("What a migration may do") describes the rules. Nothing here needs a database.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from tests.house.structure import APPS

RELEASED: Final = {
    "accounts": "0012_outgoing_mail",
    "assistants": "0006_greeting",
    "chats": "0019_fair_turns",
    "libraries": "0014_ended_documents",
    "memory": "0006_words_version",
    "operations": "0002_backup_records",
    "providers": "0008_budgets_of_operators",
    "public_api": "0005_wall_of_mails",
    "tools": "0008_failed_calls",
}
"""The last migration of each app in the release before: those up to it are not looked at. Whoever makes a release
sets it to the newest ones."""

LARGE: Final = frozenset(
    {
        *("chats.chat", "chats.chatmessage", "chats.turn", "chats.messageblock", "memory.memory"),
        *("libraries.file", "libraries.document", "libraries.documentchunk", "libraries.embedding"),
        *("providers.usagerecord", "tools.toolcallrecord", "public_api.webhookdelivery"),
        *("accounts.auditevent", "accounts.idempotencyrecord", "accounts.outgoingmail"),
    }
)
"""Tables that grow without end, or to millions of rows."""

CONCURRENT: Final = (AddIndexConcurrently, RemoveIndexConcurrently)
BY_WALL: Final = "accounts.tenancy.wall"
"""Whose functions build policies: they read no rows."""
_HARMFUL_SQL: Final = re.compile(
    r"\b(drop\s+(table|column)|rename\s+(to|column)|set\s+not\s+null|(?<!concurrently)\s+type\s+\w|truncate\b"
    r"|(create|drop)\s+(unique\s+)?index\s+(?!concurrently)|vacuum\s+full|cluster\s)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Fault:
    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Around:
    """What a rule may know: the app, the models before the operation, and the tables made since the release."""

    app: str
    state: ProjectState
    new: frozenset[str]

    def label(self, name: str) -> str:
        return f"{self.app}.{name.lower()}"

    def is_new(self, name: str) -> bool:
        return self.label(name) in self.new

    def is_large(self, name: str) -> bool:
        return self.label(name) in LARGE and not self.is_new(name)

    def field(self, model: str, name: str) -> Any:
        return self.state.models[self.app, model.lower()].get_field(name)


Rule = Callable[[Any, Around], Iterator[str]]


def faults_of(migration: Any, state: ProjectState, new: Iterable[str] = ()) -> list[Fault]:
    """Return what is wrong with a migration on these models; `state` becomes what it is after it."""
    made = frozenset(new)
    excused = getattr(migration, "excused", {})
    found: list[Fault] = []
    for operation in migration.operations:
        around = Around(migration.app_label, state, made)
        for part in {id(each): each for each in (operation, *_parts(operation))}.values():
            for rule, look in RULES.items():
                found += [Fault(rule, text) for text in look(part, around)]
        made |= {around.label(part.name) for part in _parts(operation) if _makes_table(part)}
        operation.state_forwards(migration.app_label, state)
    found += [Fault("mixes", text) for text in mixes(migration)]
    unused = excused.keys() - {fault.rule for fault in found}
    found += [Fault(rule, "It is excused, but not broken.") for rule in sorted(unused)]
    return [fault for fault in found if fault.rule not in excused or fault.rule in unused]


def _parts(operation: Any) -> list[Any]:
    """Return what the operation does to the database."""
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        return [part for inner in operation.database_operations for part in _parts(inner)]
    return [operation]


def _makes_table(operation: Any) -> bool:
    return isinstance(operation, migrations.CreateModel)


# -- Rules ---------------------------------------------------------------------------------------


def removes(operation: Any, around: Around) -> Iterator[str]:
    """The release before still selects the column."""
    if isinstance(operation, migrations.RemoveField) and not around.is_new(operation.model_name):
        yield f"Removes {operation.model_name}.{operation.name}, which the release before reads."
    elif isinstance(operation, migrations.DeleteModel) and not around.is_new(operation.name):
        yield f"Removes {operation.name}, which the release before reads."


def renames(operation: Any, around: Around) -> Iterator[str]:
    if isinstance(operation, migrations.RenameField) and not around.is_new(operation.model_name):
        yield f"Renames {operation.model_name}.{operation.old_name}."
    elif isinstance(operation, migrations.RenameModel) and not around.is_new(operation.old_name):
        yield f"Renames {operation.old_name}."
    elif isinstance(operation, migrations.AlterModelTable) and not around.is_new(operation.name):
        yield f"Renames the table of {operation.name}."
    elif isinstance(operation, migrations.AlterField) and not around.is_new(operation.model_name):
        before = around.field(operation.model_name, operation.name)
        if before.db_column != operation.field.db_column:
            yield f"Renames the column of {operation.model_name}.{operation.name}."


def needs_value(operation: Any, around: Around) -> Iterator[str]:
    """The release before inserts rows without the column, or with NULL in it."""
    if isinstance(operation, (migrations.AddField, migrations.AlterField)):
        field, name = operation.field, f"{operation.model_name}.{operation.name}"
        if (
            field.many_to_many
            or field.null
            or field.has_db_default()
            or around.is_new(operation.model_name)
        ):
            return
        if isinstance(operation, migrations.AddField):
            yield f"Adds {name}, which needs a value, without a db_default."
        else:
            before = around.field(operation.model_name, operation.name)
            if before.null or before.has_db_default():
                yield f"Takes away NULL or the db_default of {name}."


def rewrites(operation: Any, around: Around) -> Iterator[str]:
    """A new type makes Postgres write the whole table anew, under a lock that lets nobody read."""
    if not isinstance(operation, migrations.AlterField) or around.is_new(operation.model_name):
        return
    before = around.field(operation.model_name, operation.name)
    old, new = (_type_of(each) for each in (before, operation.field))
    if old != new and not _is_wider(old, new):
        yield f"Changes {operation.model_name}.{operation.name} from {old} to {new}."


def indexes(operation: Any, around: Around) -> Iterator[str]:
    """An index that is not built concurrently keeps everybody from writing for as long as it takes."""
    if isinstance(operation, migrations.AddIndex) and not isinstance(operation, CONCURRENT):
        if around.is_large(operation.model_name):
            yield f"Builds {operation.index.name} on a large table: use AddIndexConcurrently."
    elif isinstance(operation, (migrations.AddField, migrations.AlterField)):
        field: Any = operation.field
        is_indexed = field.db_index or field.unique
        if (
            is_indexed
            and around.is_large(operation.model_name)
            and not _had_index(operation, around)
        ):
            yield f"{operation.model_name}.{operation.name} brings an index on a large table."
    elif isinstance(operation, migrations.AlterUniqueTogether) and around.is_large(operation.name):
        yield f"Builds an index on {operation.name}, a large table."


def validates(operation: Any, around: Around) -> Iterator[str]:
    """A constraint reads the whole table under a lock, unless it is added NOT VALID and validated later."""
    # AddConstraintNotValid is one of its kind.
    if type(operation) is migrations.AddConstraint and around.is_large(operation.model_name):
        yield f"Adds {operation.constraint.name} to a large table: use AddConstraintNotValid."


def runs_code(operation: Any, around: Around) -> Iterator[str]:
    """Nobody but its author knows what it locks, and for how long."""
    if isinstance(operation, migrations.RunPython) and not _builds_wall(operation.code):
        yield f"Runs {getattr(operation.code, '__name__', 'a function')}(): say which rows, how long, and what the release before makes of it."
    elif isinstance(operation, migrations.RunSQL):
        sql = _text_of(operation.sql)
        found = _HARMFUL_SQL.search(sql)
        yield (
            f"Runs SQL with {found.group().strip()!r}."
            if found
            else f"Runs SQL: {sql.strip()[:60]!r}."
        )


def keeps_column(operation: Any, around: Around) -> Iterator[str]:
    """A field that only the models forget stays in its table, where new rows must do without it."""
    if not isinstance(operation, migrations.SeparateDatabaseAndState):
        return
    for part in operation.state_operations:
        if isinstance(part, migrations.RemoveField) and not operation.database_operations:
            field = around.field(part.model_name, part.name)
            if not (field.null or field.has_db_default()):
                yield f"{part.model_name}.{part.name} stays, and needs a value that nobody gives any more."


def mixes(migration: Any) -> Iterator[str]:
    """What runs concurrently may take hours and has no limit; what locks must have one, and a transaction."""
    parts = [part for operation in migration.operations for part in _parts(operation)]
    concurrent = [part for part in parts if isinstance(part, CONCURRENT)]
    if concurrent and len(concurrent) < len(parts):
        yield "Builds indexes concurrently beside other operations: they need a migration of their own."


RULES: Final[dict[str, Rule]] = {
    each.__name__: each
    for each in (
        *(removes, renames, needs_value, rewrites, indexes, validates, runs_code, keeps_column),
    )
}


def _type_of(field: Any) -> str:
    return str(field.db_type(connection))


def _is_wider(old: str, new: str) -> bool:
    """Whether Postgres only notes the new type: a longer varchar, or text instead of one."""
    sizes = [re.fullmatch(r"varchar\((\d+)\)", each) for each in (old, new)]
    if sizes[0] and new == "text":
        return True
    return bool(sizes[0] and sizes[1] and int(sizes[0][1]) <= int(sizes[1][1]))


def _had_index(operation: Any, around: Around) -> bool:
    if isinstance(operation, migrations.AddField):
        return False
    before = around.field(operation.model_name, operation.name)
    return bool(before.unique or (before.db_index and not operation.field.unique))


def _builds_wall(code: Any) -> bool:
    """Whether a function of a migration calls nothing but those that build policies."""
    called = {code.__globals__.get(name) for name in code.__code__.co_names} - {None}
    return bool(called) and all(getattr(each, "__module__", "") == BY_WALL for each in called)


def _text_of(sql: Any) -> str:
    if isinstance(sql, (list, tuple)):
        return "; ".join(
            _text_of(each[0] if isinstance(each, (list, tuple)) else each) for each in sql
        )
    return str(sql)


# -- All of them ---------------------------------------------------------------------------------


def all_faults(released: dict[str, str] = RELEASED) -> dict[str, list[Fault]]:
    """Return, by migration, what is wrong with those since the release."""
    loader = MigrationLoader(None)
    plan: list[tuple[str, str]] = []
    for leaf in loader.graph.leaf_nodes():
        plan += [node for node in loader.graph.forwards_plan(leaf) if node not in plan]
    old = {n for app, name in released.items() for n in loader.graph.forwards_plan((app, name))}
    # Those of the release first: it has all of them.
    ordered = [n for n in plan if n in old or n[0] not in APPS]
    state = ProjectState()
    for node in ordered:
        state = loader.graph.nodes[node].mutate_state(state, preserve=False)
    found: dict[str, list[Fault]] = {}
    new: set[str] = set()
    for node in (n for n in plan if n not in ordered):
        migration = loader.graph.nodes[node]
        found[f"{node[0]}.{node[1]}"] = faults_of(migration, state, new)
        new |= {
            f"{node[0]}.{part.name.lower()}"
            for operation in migration.operations
            for part in _parts(operation)
            if _makes_table(part)
        }
    return found


def main() -> int:
    """Print all faults; the exit status is 1 if there is one."""
    found = all_faults()
    for name, faults in found.items():
        for fault in faults:
            sys.stdout.write(f"{name}: {fault.rule}: {fault.text}\n")
    is_clean = not any(found.values())
    if is_clean:
        sys.stdout.write(f"Migrations since the release before: {len(found)}, no complaint.\n")
    return 0 if is_clean else 1


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
    django.setup()
    sys.exit(main())
