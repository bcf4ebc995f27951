"""Write many rows by one statement: INSERT … SELECT, with something for each column that must have a value.

Indexes that no constraint needs are dropped before and made again after, keys are not checked: what is
written here refers to what is written here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from psycopg import Connection, sql

_FILLERS: Final = {
    "text": "''",
    "varchar": "''",
    "bool": "false",
    "int2": "0",
    "int4": "0",
    "int8": "0",
    "float8": "0",
    "numeric": "0",
    "jsonb": "'{}'",
    "timestamptz": "now()",
}
_COLUMNS_SQL: Final = """
SELECT column_name, udt_name FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = %s AND is_nullable = 'NO' AND is_generated = 'NEVER'
"""
_INDEXES_SQL: Final = """
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = %s::regclass
AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
"""


def insert(
    connection: Connection[Any], table: str, columns: Mapping[str, str], source: str
) -> None:
    """Insert what `source` (FROM …) gives: an expression for each column that is named."""
    filled = {
        name: _FILLERS.get(kind, f"'{{}}'::{kind}")
        for name, kind in connection.execute(_COLUMNS_SQL, [table])
        if name not in columns
    }
    given = {**filled, **columns}
    names = ", ".join(f'"{name}"' for name in given)
    connection.execute(
        f"INSERT INTO {table} ({names}) SELECT {', '.join(given.values())} {source}".encode()
    )


def copy_in(connection: Connection[Any], table: str, rows: Iterable[Sequence[Any]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
        for row in rows:
            copy.write_row(row)


@contextmanager
def without_indexes(connection: Connection[Any], tables: Sequence[str]) -> Iterator[None]:
    """Fill these tables in the block; their indexes are made after it."""
    made = []
    for table in tables:
        for name, definition in connection.execute(_INDEXES_SQL, [table]).fetchall():
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
            made.append(definition)
    yield
    connection.execute("SET maintenance_work_mem = '2GB'")
    for definition in made:
        connection.execute(definition)
    for table in tables:
        connection.execute(sql.SQL("VACUUM (ANALYZE, PARALLEL 0) {}").format(sql.Identifier(table)))
