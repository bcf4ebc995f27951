"""Write a row of every walled table for each of several people, whatever columns the table has.

The values are made from the models' fields, so a new table is filled, and attacked, without a word
here. Rows are written by the server's superuser, and committed: other logins shall meet them.
"""

import datetime
import enum
import itertools
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from django.apps import apps
from django.db import connection, models
from psycopg import sql

from accounts.models import Organization, User
from accounts.tenancy.wall import TABLES

MODELS: Final[dict[str, Any]] = {
    model._meta.db_table: model
    for model in apps.get_models(include_auto_created=True)
    if model._meta.db_table in TABLES and not model._meta.proxy
}
OF_PERSONS: Final = frozenset(
    {
        "chats_chat",
        "chats_chatmessage",
        "chats_feedback",
        "chats_messageblock",
        "chats_turn",
        "libraries_file",
        "memory_memory",
    }
)
"""What belongs to one person or guest."""
OF_CREATORS: Final = frozenset(
    {
        "assistants_assistant",
        "assistants_assistanttool",
        "assistants_sceneprompt",
        "libraries_library",
        "tools_tool",
    }
)
"""What its creator alone sees unless it is shared, which no row here is, or granted to a group: each
here to one that only its creator is in (tests/wall/test_read_shared_rows.py has the others)."""
NOT_OF_WEB_GUESTS: Final = frozenset(
    {
        "accounts_apikey",
        "accounts_auditchain",
        "accounts_auditevent",
        "accounts_group",
        "accounts_groupmember",
        "accounts_invitation",
        "public_api_webhook",
    }
)
"""What else there is, is the whole organization's, but not all of it its guests'."""
WORD: Final = "secret"
_numbers = itertools.count(1)
_FIXED: Final[dict[str, dict[str, Callable[[], Any]]]] = {
    "accounts_auditevent": {"number": lambda: next(_numbers)},
    "chats_chatmessage": {"role": lambda: "human"},
    "chats_turn": {"input": lambda: None},
    "providers_budget": {"scope": lambda: "user", "subject": lambda: uuid.uuid4().hex},
}
"""What a constraint or a unique index wants."""
_NAMED: Final = frozenset({"organization", "user", "chat", "library"})
"""References that are followed although they may be empty."""


@dataclass(frozen=True)
class Someone:
    """A person, or with `guest_id` a guest, in an organization."""

    name: str
    organization_id: uuid.UUID
    user_id: uuid.UUID | None = None
    guest_id: str | None = None

    def settings(self, **others: str) -> dict[str, str]:
        """The settings by which Postgres knows them."""
        person = self.guest_id or str(self.user_id or "")
        return {"organization": str(self.organization_id), "user": person} | others


ACME: Final = uuid.uuid4()
RIVAL: Final = uuid.uuid4()
ALICE: Final = Someone("alice", ACME, uuid.uuid4())
BOB: Final = Someone("bob", ACME, uuid.uuid4())
GUEST: Final = Someone("guest", ACME, guest_id="web:visitor")
MALLORY: Final = Someone("mallory", RIVAL, uuid.uuid4())
PEOPLE: Final = (ALICE, BOB, GUEST, MALLORY)
LIBRARY: Final = Someone("library", ACME)
"""Nobody: a file of a library's document is no person's."""


@dataclass
class Rows:
    """The ids of the rows, by table and by whose they are."""

    ids: dict[str, dict[str, uuid.UUID]] = field(default_factory=dict)

    def visible_to(self, someone: Someone, table: str) -> set[uuid.UUID]:
        """The ids that they should see, as the documentation says it and not as the policies do."""
        mine = [
            each
            for each in (*PEOPLE, LIBRARY)
            if each.organization_id == someone.organization_id
            and (table not in OF_PERSONS or each in (someone, LIBRARY))
            and (table not in OF_CREATORS or each == someone)
            and (table not in NOT_OF_WEB_GUESTS or someone.guest_id is None)
        ]
        return {self.ids[table][each.name] for each in mine if each.name in self.ids[table]}

    def hidden_from(self, someone: Someone, table: str) -> set[uuid.UUID]:
        return set(self.ids[table].values()) - self.visible_to(someone, table)


def write_rows(server: "psycopg.Connection[Any]") -> Rows:
    """A row of every table for everybody in PEOPLE; of a guest's only those that guests may have."""
    rows = Rows({table: {} for table in TABLES})
    for someone in (*PEOPLE, LIBRARY):
        writer = _Writer(server, someone, rows)
        for table, model in MODELS.items():
            if someone.user_id or table in (OF_PERSONS if someone.guest_id else ["libraries_file"]):
                writer.row_of(model)
        for table in TABLES:
            if _has_words(table):
                name = sql.Identifier(table)
                fill = sql.SQL("UPDATE {} SET search = to_tsvector('simple', {})")
                server.execute(fill.format(name, sql.Literal(WORD)))
    return rows


def pk_of(table: str) -> str:
    """The name of the column that holds the ids of `Rows`."""
    name: str = MODELS[table]._meta.pk.column
    return name


def _is_of_organizations(model: Any) -> bool:
    return model is Organization or model._meta.pk.related_model is Organization


def _has_words(table: str) -> bool:
    return any(f.column == "search" for f in MODELS[table]._meta.concrete_fields)


class _Writer:
    """Writes one person's rows, and first what those hang on."""

    def __init__(self, server: "psycopg.Connection[Any]", someone: Someone, rows: Rows) -> None:
        self._server = server
        self._someone = someone
        self._rows = rows
        self._made: dict[Any, uuid.UUID | None] = {}

    def row_of(self, model: Any) -> Any:
        if model not in self._made:
            pk = self._made[model] = self._known(model) or self._write(model)
            if model._meta.db_table in TABLES:
                self._rows.ids[model._meta.db_table][self._someone.name] = pk
        return self._made[model]

    def _known(self, model: Any) -> Any:
        """An organization is its members' in common, and so is what shares its id."""
        if _is_of_organizations(model):
            wanted = self._someone.organization_id
            there = self._rows.ids[model._meta.db_table].values()
            return wanted if wanted in there or not self._someone.user_id else None
        return None

    def _write(self, model: Any) -> uuid.UUID:
        values = dict(self._values(model))
        names = sql.SQL(", ").join(sql.Identifier(name) for name in values)
        places = sql.SQL(", ").join(sql.Placeholder() for _ in values)
        table = sql.Identifier(model._meta.db_table)
        insert = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING {}")
        pk = sql.Identifier(model._meta.pk.column)
        found = self._server.execute(
            insert.format(table, names, places, pk), list(values.values())
        ).fetchone()
        assert found is not None
        made: uuid.UUID = found[0]
        return made

    def _values(self, model: Any) -> Iterator[tuple[str, Any]]:
        fixed = _FIXED.get(model._meta.db_table, {})
        for column in model._meta.concrete_fields:
            if column.generated:
                continue
            make = fixed.get(column.name)
            value = make() if make else self._value(model, column)
            if isinstance(value, enum.Enum):
                value = value.value
            yield column.column, column.get_db_prep_save(value, connection)

    def _value(self, model: Any, column: Any) -> Any:
        if column.primary_key:
            return self._pk(model)
        if column.column == "guest_id":
            return self._someone.guest_id
        if column.is_relation:
            return self._reference(column)
        if column.has_default() and not column.unique:
            return column.get_default()
        return None if column.null else _plain_value(column)

    def _pk(self, model: Any) -> uuid.UUID:
        if _is_of_organizations(model):
            return self._someone.organization_id
        if model is User and self._someone.user_id is not None:
            return self._someone.user_id
        return uuid.uuid4()

    def _reference(self, column: Any) -> Any:
        if column.null and column.name not in _NAMED:
            return None
        if column.related_model is User and self._someone.user_id is None and column.null:
            return None
        return self.row_of(column.related_model)


def _plain_value(column: Any) -> Any:
    if column.choices:
        return column.choices[0][0]
    match column.get_internal_type():
        case "CharField" | "TextField" | "SlugField" | "URLField" | "EmailField":
            return f"{uuid.uuid4().hex}@example.com"[-(column.max_length or 44) :]
        case "DateTimeField":
            return datetime.datetime.now(datetime.UTC)
        case "DateField":
            return datetime.datetime.now(datetime.UTC).date()
        case "UUIDField":
            return uuid.uuid4()
        case "JSONField":
            return {}
        case "BooleanField":
            return False
        case "ArrayField":
            return []
        case "HalfVectorField" | "VectorField":
            return [1.0, 0.0]
    assert isinstance(column, models.IntegerField | models.FloatField | models.DecimalField), column
    return 1
