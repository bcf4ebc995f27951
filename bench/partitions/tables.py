"""Make Amber's large tables, plain and in partitions, and fill them with two years of rows.

The rows are made by Postgres: UUIDv7s of their time, ids of tenants, people and chats that say which
they are (`row_id`), so that statements can ask for rows without looking them up. Messages are short
(40 characters), or 20 million of them would not fit a small disk. What rows refer to is not there:
foreign keys are made, and not checked for old rows.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import psycopg

from amber import embedded
from amber.lib.ids import least_id_at
from bench.loadgen import say
from bench.stand import ROOT
from tests.fixtures.secret_keys import new_secret_key

Connection = psycopg.Connection[Any]

MONTHS: Final = 24
ORGANIZATIONS: Final = 1_000
PEOPLE: Final = 10_000
MESSAGES_OF_CHAT: Final = 100
CHATS_AT_ONCE: Final = 1_000
"""Chats that are written at the same time: the messages of one lie that far apart."""
CHUNKS_OF_LIBRARY: Final = 2_000
HASHES: Final = 16
DIMENSIONS: Final = 128
STARTS: Final = [
    datetime(2024 + (n - 1) // 12, (n - 1) % 12 + 1, 1, tzinfo=UTC) for n in range(1, MONTHS + 2)
]
"""The beginnings of the months; the last one is the end."""
TEMPLATE: Final = "template_of_bench"
LOAD_SETTINGS: Final = (
    "SET synchronous_commit = off; SET maintenance_work_mem = '512MB';"
    "SET max_parallel_maintenance_workers = 0; SET session_replication_role = replica"
)

_UUID: Final = (
    "(lpad(to_hex({0}), 8, '0') || '0000-7000-8000-' || lpad(to_hex({1}), 12, '0'))::uuid"
)


ORGANIZATION, PERSON, CHAT, ASSISTANT, DOCUMENT, LIBRARY, MODEL = range(1, 8)
"""Kinds of rows that ids name."""


def row_id(kind: int, number: int) -> UUID:
    """Return the id of an organization, a person, a chat, as `_id` makes it in SQL."""
    return UUID(f"{kind:08x}-0000-7000-8000-{number:012x}")


def _id(kind: int, number: str) -> str:
    """Return SQL of the id of an organization, a person, a chat: no time is in it."""
    return _UUID.format(kind, f"({number})::bigint")


def _timed_id(number: str) -> str:
    """Return SQL of a UUIDv7 at the time of the row with this number: `step_ms` after the one before."""
    at = f"({{start_ms}} + (({number}) * {{step_ms}})::bigint)"
    random = f"lpad(to_hex(({number})::bigint), 15, '0')"
    return f"(lpad(to_hex({at}), 12, '0') || '70008' || {random})::uuid"


_AT: Final = "to_timestamp(({start_ms} + (n * {step_ms})::bigint) / 1000.0)"
_CHAT: Final = (
    f"(n / ({CHATS_AT_ONCE} * {MESSAGES_OF_CHAT}) * {CHATS_AT_ONCE} + n % {CHATS_AT_ONCE})"
)

_LIBRARY: Final = f"CASE WHEN n % 5 = 0 THEN 0 ELSE 1 + n / {CHUNKS_OF_LIBRARY} END"

_ROWS_SQL: Final[Mapping[str, str]] = {
    "providers_usagerecord": f"""
INSERT INTO providers_usagerecord (id, created_at, updated_at, organization_id, user_id, assistant_id,
    turn_id, kind, model, prompt_tokens, completion_tokens, cached_tokens, estimated, cost,
    first_token_ms, latency_ms, outcome)
SELECT {_timed_id("n")}, {_AT}, {_AT}, {_id(ORGANIZATION, f"{_CHAT} % {ORGANIZATIONS}")},
    {_id(PERSON, f"{_CHAT} % {PEOPLE}")}, {_id(ASSISTANT, f"{_CHAT} % {ORGANIZATIONS}")},
    {_timed_id("n - 0.001")}, 'chat', 'gpt-large', n % 8000, n % 900, 0, false, n % 1000 / 100000.0,
    n % 2000, n % 20000, 'ok'
FROM generate_series({{first}}::bigint, {{last}}::bigint) n""",  # noqa: S608
    "chats_chatmessage": f"""
INSERT INTO chats_chatmessage (id, created_at, updated_at, organization_id, chat_id, parent_id,
    position, role, content, hidden, citations, turn_id, step, prompt_tokens, completion_tokens,
    total_tokens, search)
SELECT {_timed_id("n")}, {_AT}, {_AT}, {_id(ORGANIZATION, f"{_CHAT} % {ORGANIZATIONS}")}, {_id(CHAT, _CHAT)},
    CASE WHEN n / {CHATS_AT_ONCE} % {MESSAGES_OF_CHAT} > 0 THEN {_timed_id(f"n - {CHATS_AT_ONCE}")} END,
    n / {CHATS_AT_ONCE} % {MESSAGES_OF_CHAT},
    CASE n / {CHATS_AT_ONCE} % 2 WHEN 0 THEN 'user' ELSE 'assistant' END,
    'What somebody said, number ' || lpad(n::text, 12), false, '[]',
    {_timed_id("n - 0.001")}, 0, 100, 100, 200,
    array_to_tsvector(ARRAY['w' || n % 50, 'w' || n * 7919 % 5003, 'w' || n * 104729 % 500009])
FROM generate_series({{first}}::bigint, {{last}}::bigint) n""",  # noqa: S608
    "libraries_documentchunk": f"""
INSERT INTO libraries_documentchunk (id, created_at, updated_at, organization_id, document_id,
    library_id, embedding_model_id, content, "order", start, "end", tokens, vectorized, vector)
SELECT {_timed_id("n")}, {_AT}, {_AT}, {_id(ORGANIZATION, _LIBRARY)},
    {_id(DOCUMENT, "n / 100")}, {_id(LIBRARY, _LIBRARY)}, {_id(MODEL, "1")}, 'A chunk.', n % 100,
    0, 8, 2, true,
    (SELECT array_agg(sin(n * 12.9898 + d * (78.233 + n % 89)) )::real[]::halfvec FROM
        generate_series(1, {DIMENSIONS}) d)
FROM generate_series({{first}}::bigint, {{last}}::bigint) n""",  # noqa: S608
}


@dataclass(frozen=True, slots=True)
class Shape:
    """How a table is cut up."""

    table: str
    method: str
    parts: tuple[tuple[str, str], ...]
    """Names and bounds of the partitions."""


def _months(table: str) -> tuple[tuple[str, str], ...]:
    bounds = [least_id_at(start) for start in STARTS]
    months = zip(STARTS, bounds, bounds[1:], strict=False)
    return (
        *(
            (f"{table}_{start:%Y_%m}", f"FROM ('{low}') TO ('{high}')")
            for start, low, high in months
        ),
        (f"{table}_rest", f"FROM ('{bounds[-1]}') TO (MAXVALUE)"),
    )


SHAPES: Final[Mapping[str, Shape]] = {
    "usage": Shape("providers_usagerecord", "RANGE (id)", _months("providers_usagerecord")),
    "messages": Shape("chats_chatmessage", "RANGE (id)", _months("chats_chatmessage")),
    "chunks": Shape(
        "libraries_documentchunk",
        "HASH (organization_id)",
        tuple(
            (f"libraries_documentchunk_{n}", f"WITH (MODULUS {HASHES}, REMAINDER {n})")
            for n in range(HASHES)
        ),
    ),
}


# -- Databases -------------------------------------------------------------------------------------


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Run a Postgres of its own. It need not survive a crash, but writes its log as a durable one does."""
    server = embedded.prepare_postgres(embedded.make_var(folder))
    server.argv.extend(
        part
        for setting in ("fsync=off", "max_wal_size=3GB", "wal_level=minimal", "max_wal_senders=0")
        for part in ("-c", setting)
    )
    with (folder / "postgres.log").open("wb") as log, embedded.running(server, output=log):
        yield server.url


def make_template(url: str) -> None:
    """Make a database with Amber's tables, and nothing in them."""
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {TEMPLATE}")
    own = _database(url, TEMPLATE)
    code = "import django; django.setup(); from amber.setup.migration import migrate; migrate()"
    environ = os.environ | {
        "DATABASE_URL": own,
        "DJANGO_SETTINGS_MODULE": "amber.settings",
        "AMBER_SECRET_KEYS": new_secret_key(),
        "AMBER_SECRET_KEY": new_secret_key(),
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environ, check=True)


def _database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


@contextmanager
def copy_of_template(url: str, name: str) -> Iterator[tuple[str, Connection]]:
    """Give the address of a database and a connection to it. It is dropped after the block: two of
    20 million messages would be too large."""
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        own = _database(url, name)
        with psycopg.connect(own, autocommit=True) as made:
            yield own, made
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


_VECTORS_SQL: Final = (
    "CREATE INDEX chunk_hnsw ON libraries_documentchunk USING hnsw"
    f" ((vector::halfvec({DIMENSIONS})) halfvec_cosine_ops)"
)
_INDEXES_SQL: Final = """
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = %s::regclass
AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u'))
"""
_KEYS_SQL: Final = """
SELECT conrelid::regclass::text, conname, contype, pg_get_constraintdef(oid) FROM pg_constraint
WHERE (conrelid = %s::regclass OR confrelid = %s::regclass) AND contype IN ('p', 'u', 'f')
ORDER BY contype = 'f'
"""


def load(made: Connection, shape: Shape, count: int, *, parted: bool) -> dict[str, float]:
    """Fill the table with `count` rows, then make its indexes; return seconds of both."""
    made.execute(LOAD_SETTINGS)
    indexes = made.execute(_INDEXES_SQL, [shape.table]).fetchall()
    keys = made.execute(_KEYS_SQL, [shape.table] * 2).fetchall()
    for table, name, _, _ in sorted(keys, key=lambda key: key[2] != "f"):
        made.execute(f'ALTER TABLE {table} DROP CONSTRAINT IF EXISTS "{name}"')
    for name, _ in indexes:
        made.execute(f"DROP INDEX {name}")
    if parted:
        _cut_up(made, shape)
    begun = time.monotonic()
    _write_rows(made, shape, count)
    loaded = time.monotonic()
    for table, name, kind, definition in keys:
        key = _key(shape, kind, definition, parted=parted)
        made.execute(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {key}')
    for _, definition in indexes:
        made.execute(definition)
    if shape.table == "libraries_documentchunk":
        made.execute(_VECTORS_SQL)
    indexed = time.monotonic()
    made.execute(f"VACUUM (ANALYZE, FREEZE) {shape.table}")
    return {"rows_seconds": round(loaded - begun), "indexes_seconds": round(indexed - loaded)}


def _key(shape: Shape, kind: str, definition: str, *, parted: bool) -> str:
    """Return a constraint as the table bears it: keys of a table in hashes need their column, and
    foreign keys are not checked, since what the rows refer to is not all there."""
    if kind == "f":
        return definition.removesuffix(" NOT VALID") + " NOT VALID"
    if parted and "HASH" in shape.method:
        return definition.replace("(", "(organization_id, ", 1)
    return definition


def _cut_up(made: Connection, shape: Shape) -> None:
    made.execute(f"ALTER TABLE {shape.table} RENAME TO plain")
    made.execute(
        f"CREATE TABLE {shape.table} (LIKE plain INCLUDING ALL) PARTITION BY {shape.method}"
    )
    for name, bounds in shape.parts:
        made.execute(f"CREATE TABLE {name} PARTITION OF {shape.table} FOR VALUES {bounds}")
    made.execute("DROP TABLE plain CASCADE")


def _write_rows(made: Connection, shape: Shape, count: int) -> None:
    start, end = (int(each.timestamp() * 1_000) for each in (STARTS[0], STARTS[-1]))
    about = {"start_ms": start, "step_ms": (end - start) / count}
    every = 500_000
    for first in range(0, count, every):
        last = min(first + every, count) - 1
        made.execute(_ROWS_SQL[shape.table].format(first=first, last=last, **about))
        say(f"  {last + 1:,} rows of {shape.table}")
