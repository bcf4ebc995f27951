"""Turn the ledger of an existing installation into partitions, while Amber runs.

Nothing is copied: the table as it is becomes the first partition of a new one of its name.

1. `declare_bound`: a check that all its ids lie before a month to come, for new rows only.
2. `prove_bound`: Postgres reads the table once and finds that the old rows pass, too.
3. `_change_places`: the new table takes name, indexes, keys and policies, and the old one becomes its
   partition, without reading it, since the check holds. One transaction under a lock, milliseconds.
4. Months are made ahead (`operations.partitions.upkeep`).
5. `_verify`: of the rows that were there at the start none is missing.

Each step is one transaction, and the catalogs say which is next, so that a conversion that was
killed goes on where it was. One that is left lying is harmless: the periodic job removes the check
before its month begins.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.utils import timezone

from accounts.tenancy.wall import wall_sql
from amber.lib.ids import least_id_at
from operations.partitions import upkeep
from operations.partitions.bound import MARGIN, Bound, declare_bound, find_bound, prove_bound
from operations.partitions.catalog import (
    LEDGER,
    attach,
    create_like,
    grants_of,
    is_partitioned,
    is_sole,
    list_partitions,
    short_locks,
    shut,
    until_unlocked,
)
from operations.partitions.months import first_id

Tell = Callable[[str], None]


class ConversionError(Exception):
    """The table cannot be cut up, or does not hold what it held; the text says why."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The rows that were there when the conversion began, before and after it, and all rows now."""

    before: int
    after: int
    now: int


def convert(tell: Tell) -> RowCounts:
    """Take all steps that are left. Raises ConversionError, ForeignIdsError; OperationalError if a lock
    is never free."""
    started = timezone.now()
    until = least_id_at(started)
    before = count_rows(until)
    tell(f"{before:,} rows so far.")
    if not is_partitioned():
        _become_partition(tell, started)
    until_unlocked(lambda: _make_months(tell, started))
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {LEDGER}")  # autovacuum does it for partitions only
    return _verify(until, before)


def _make_months(tell: Tell, now: datetime) -> None:
    for name in upkeep.make_missing(now):
        tell(f"Made {name}.")


def count_rows(until: UUID) -> int:
    """Count the rows with ids before `until`. Reads an index of them all."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {LEDGER} WHERE id < %s", [until])  # noqa: S608
        (count,) = cursor.fetchone()
    return int(count)


def _verify(until: UUID, before: int) -> RowCounts:
    """Count again, in total and by partition. Raises ConversionError for a row too few."""
    each = " + ".join(f"(SELECT count(*) FROM ONLY {part.name})" for part in list_partitions())  # noqa: S608
    with connection.cursor() as cursor:
        # One statement sees one moment, whatever is written meanwhile.
        cursor.execute(
            f"SELECT count(*) FILTER (WHERE id < %s), count(*), {each} FROM {LEDGER}",  # noqa: S608
            [until],
        )
        after, now, held = cursor.fetchone()
    if held != now:
        raise ConversionError(f"The table shows {now:,} rows, its partitions hold {held:,}.")
    if after < before:
        raise ConversionError(
            f"Of {before:,} rows {after:,} are left. That is right only if an organization was erased,"
            " or usage was forgotten, meanwhile."
        )
    return RowCounts(before, after, now)


def _become_partition(tell: Tell, now: datetime) -> None:
    bound = find_bound()
    if bound is None or bound.is_near(now, MARGIN):
        until_unlocked(lambda: declare_bound(now))
        tell("New rows are checked.")
        bound = find_bound()
    assert bound is not None
    if not bound.is_proven:
        tell("Reading the table once, while everything goes on.")
        prove_bound(bound)
    until_unlocked(lambda: _change_places(bound))
    tell(f"The table is the partition {bound.name} of a new one.")


def _change_places(bound: Bound) -> None:
    """Put a new, partitioned table in the place of the old one, which becomes its first partition."""
    old = check = bound.name
    with short_locks() as cursor:
        if not is_sole(cursor):
            raise ConversionError("Another process is changing the partitions. Try again.")
        cursor.execute(f"LOCK TABLE {LEDGER} IN ACCESS EXCLUSIVE MODE")
        if is_partitioned():
            return
        cursor.execute(_DEFINITIONS_SQL, {"table": LEDGER})
        definitions = [statement for (statement,) in cursor.fetchall()]
        _put_aside(cursor, old)
        create_like(cursor, LEDGER, like=old, suffix="PARTITION BY RANGE (id)")
        # It came along with LIKE; this table takes later months, too.
        cursor.execute(f"ALTER TABLE {LEDGER} DROP CONSTRAINT {check}")
        for statement in definitions:
            cursor.execute(statement)
        _give_rights(cursor, old)
        attach(cursor, old, f"FOR VALUES FROM (MINVALUE) TO ('{first_id(bound.month)}')")
        cursor.execute(f"ALTER TABLE {old} DROP CONSTRAINT {check}")
        shut(cursor, old)


def _put_aside(cursor: Any, old: str) -> None:
    """Rename the table and its indexes, whose names the new ones take."""
    cursor.execute(f"ALTER TABLE {LEDGER} RENAME TO {old}")
    cursor.execute(_INDEXES_SQL, [old])
    quoted = connection.ops.quote_name
    for (index,) in cursor.fetchall():
        # A name has 63 bytes; Postgres would cut off what tells the two apart.
        cursor.execute(f"ALTER INDEX {quoted(index)} RENAME TO {quoted(index[:56] + '_before')}")


def _give_rights(cursor: Any, old: str) -> None:
    """Give the new table the old one's owner and rights, and its policies."""
    cursor.execute(
        "SELECT pg_get_userbyid(relowner), relforcerowsecurity FROM pg_class"
        " WHERE oid = %s::regclass",
        [old],
    )
    owner, is_forced = cursor.fetchone()
    cursor.execute(f"ALTER TABLE {LEDGER} OWNER TO {connection.ops.quote_name(owner)}")
    for grantee, right in grants_of(cursor, old):
        cursor.execute(f"GRANT {right} ON {LEDGER} TO {grantee}")
    cursor.execute(wall_sql(LEDGER))
    if not is_forced:  # an installation with one role, which must pass
        cursor.execute(f"ALTER TABLE {LEDGER} NO FORCE ROW LEVEL SECURITY")


_INDEXES_SQL: Final = """
SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = %s::regclass
"""

# Keys first: a foreign key of the old table is taken for the new one's as it is attached.
_DEFINITIONS_SQL: Final = """
SELECT format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', %(table)s::text, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = %(table)s::regclass AND contype IN ('p', 'u', 'f')
UNION ALL
SELECT pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = %(table)s::regclass
AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u'))
"""
