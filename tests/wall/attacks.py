"""Say by which statements one person's rows could be reached by another, for any table."""

import json
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID, uuid4

import psycopg
from psycopg import sql

from tests.wall.rows import MODELS, OF_PERSONS, pk_of

COMMANDS: Final = ("SELECT", "UPDATE", "DELETE", "INSERT")


def readings(table: str) -> list[sql.Composed]:
    """Statements that return an id of each row they reach. What they change is to be rolled back."""
    names = [sql.Identifier(table), sql.Identifier(pk_of(table))]
    texts = (
        "SELECT {1} FROM public.{0}",
        "SELECT {1} FROM public.{0} FOR UPDATE",
        "SELECT {1} FROM public.{0} TABLESAMPLE BERNOULLI (100)",
        "WITH found AS MATERIALIZED (SELECT * FROM public.{0}) SELECT {1} FROM found",
        "UPDATE public.{0} SET {1} = {1} RETURNING {1}",
        "DELETE FROM public.{0} RETURNING {1}",
    )
    return [sql.SQL(text).format(*names) for text in texts]


def blind_writings(table: str) -> list[sql.Composed]:
    """Statements that look at no column, so that only policies for writing count."""
    name = sql.Identifier(table)
    columns = {field.column for field in MODELS[table]._meta.concrete_fields}
    change = "updated_at = now()" if "updated_at" in columns else "number = 0"
    texts = (f"UPDATE public.{{0}} SET {change}", "DELETE FROM public.{0}")
    return [sql.SQL(text).format(name) for text in texts]


def copies(table: str, row: dict[str, Any]) -> Iterator[sql.Composed]:
    """Statements that write this row again: as a new one, and over it."""
    generated = {f.column for f in MODELS[table]._meta.concrete_fields if f.generated}
    held = {key: value for key, value in row.items() if key not in generated}
    name = sql.Identifier(table)
    columns = sql.SQL(", ").join(map(sql.Identifier, held))
    source = sql.SQL("FROM jsonb_populate_record(NULL::public.{}, {}::jsonb)")
    again = source.format(name, sql.Literal(json.dumps(held)))
    pk = pk_of(table)
    fresh = source.format(name, sql.Literal(json.dumps({**held, pk: str(uuid4())})))
    insert = sql.SQL("INSERT INTO public.{} ({}) SELECT {} ")
    head = insert.format(name, columns, columns)
    if pk != "organization_id":
        yield head + fresh
    over = sql.SQL(" ON CONFLICT ({0}) DO UPDATE SET {0} = excluded.{0}")
    yield head + again + over.format(sql.Identifier(pk))


def moves(table: str, other: dict[str, Any], own: UUID) -> Iterator[sql.Composed]:
    """Statements that give one's own row to somebody else, by each column that says whose it is."""
    columns = ["organization_id", "budget_id", "counter_id"]
    if table in OF_PERSONS:
        columns += ["user_id", "guest_id"] if "guest_id" in other else ["chat_id"]
    for column in columns:
        if other.get(column) is not None:
            yield sql.SQL("UPDATE public.{} SET {} = {} WHERE {} = {}").format(
                sql.Identifier(table),
                sql.Identifier(column),
                sql.Literal(other[column]),
                sql.Identifier(pk_of(table)),
                sql.Literal(own),
            )


def row_of(server: "psycopg.Connection[Any]", table: str, pk: UUID) -> dict[str, Any]:
    """The row as it is stored, as JSON has it."""
    found = server.execute(
        sql.SQL("SELECT to_jsonb(t) FROM public.{} AS t WHERE {} = %s").format(
            sql.Identifier(table), sql.Identifier(pk_of(table))
        ),
        [pk],
    ).fetchone()
    assert found is not None
    row: dict[str, Any] = found[0]
    return row
