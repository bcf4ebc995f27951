"""Read what Postgres' catalogs say of a table's partitions, and change them with short locks.

Each change is a transaction that gives up after LOCK_TIMEOUT: whoever waits for a table's lock
makes everybody else wait behind it. Nothing here decides what should be changed.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected, LockNotAvailable

from operations.partitions.months import first_id

logger = structlog.get_logger(__name__)

LEDGER: Final = "providers_usagerecord"
"""The table that is cut up; docs/scaling.md says what that saves, and why no other is."""

REST: Final = f"{LEDGER}_rest"
"""Takes the rows whose month has no partition: a call is never refused for want of one."""

LOCK_TIMEOUT: Final = "500ms"
PAUSE_SECONDS: Final = 1.0
ATTEMPTS: Final = 300

_LOCK: Final = 0x616D_6265_7202
"""Key of the advisory lock: any number nobody else uses."""

# Comments, defaults and checks come along; indexes and foreign keys when the partition is attached.
_LIKE: Final = (
    "INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING IDENTITY"
    " INCLUDING STORAGE INCLUDING COMPRESSION INCLUDING COMMENTS"
)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition holds the ids from `low` to the one before `high`. None is no bound."""

    name: str
    low: UUID | None
    high: UUID | None
    is_rest: bool
    estimated_rows: int
    size_bytes: int


def is_partitioned() -> bool:
    (kind,) = _fetch_one("SELECT relkind FROM pg_class WHERE oid = %s::regclass", [LEDGER])
    return bool(kind == "p")


def list_partitions() -> list[Partition]:
    """Return the partitions, the oldest first and the rest last. None if there are none."""
    with connection.cursor() as cursor:
        cursor.execute(_PARTITIONS_SQL, [LEDGER])
        found = [_read_partition(*row) for row in cursor.fetchall()]
    return sorted(found, key=lambda part: (part.is_rest, part.low or UUID(int=0)))


_BOUND: Final = re.compile(r"(FROM|TO) \('([^']+)'\)")
"""As Postgres writes the bounds of a partition; `MINVALUE` is none."""


def _read_partition(name: str, bounds: str, rows: float, size_bytes: int) -> Partition:
    said = dict(_BOUND.findall(bounds))
    low, high = (UUID(said[word]) if word in said else None for word in ("FROM", "TO"))
    return Partition(name, low, high, bounds == "DEFAULT", max(0, int(rows)), size_bytes)


def size_of(table: str) -> tuple[int, int]:
    """Return the estimated rows of a plain table, and its bytes with indexes."""
    rows, size_bytes = _fetch_one(
        "SELECT reltuples, pg_total_relation_size(oid) FROM pg_class WHERE oid = %s::regclass",
        [table],
    )
    return max(0, int(rows)), size_bytes


def name_of(month: date) -> str:
    return f"{LEDGER}_{month:%Y_%m}"


@contextmanager
def short_locks() -> Iterator[Any]:
    """Give a cursor in a transaction that waits for no lock longer than LOCK_TIMEOUT.

    Raises OperationalError if it had to.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        yield cursor


def is_sole(cursor: Any) -> bool:
    """Take the advisory lock until the transaction ends; False if somebody else has it."""
    cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
    return bool(cursor.fetchone()[0])


def until_unlocked(change: Callable[[], None]) -> None:
    """Try a change with short locks until nobody is in its way. Raises OperationalError in the end."""
    for attempt in range(ATTEMPTS):
        try:
            return change()
        except OperationalError as error:
            is_last = attempt == ATTEMPTS - 1
            if is_last or not isinstance(error.__cause__, (LockNotAvailable, DeadlockDetected)):
                raise
            logger.info("partition_lock_missed", attempt=attempt + 1)
            time.sleep(PAUSE_SECONDS)
    return None


def create_like(cursor: Any, name: str, *, like: str, suffix: str = "") -> None:
    cursor.execute(f"CREATE TABLE {name} (LIKE {like} {_LIKE}) {suffix}")


def shut(cursor: Any, name: str) -> None:
    """Let nobody reach a partition but through its table: it has its owner, no rights, no policy.

    The table's policies and rights are the ones that count for statements that name the table.
    """
    cursor.execute(_OWNER_OF_SQL, [LEDGER])
    owner, is_forced = cursor.fetchone()
    quoted = connection.ops.quote_name
    cursor.execute(f"ALTER TABLE {name} OWNER TO {quoted(owner)}")
    cursor.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
    if is_forced:
        cursor.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
    cursor.execute("SELECT policyname FROM pg_policies WHERE tablename = %s", [name])
    for (policy,) in cursor.fetchall():
        cursor.execute(f"DROP POLICY {quoted(policy)} ON {name}")
    for grantee, _ in grants_of(cursor, name):
        cursor.execute(f"REVOKE ALL ON {name} FROM {grantee}")


def grants_of(cursor: Any, table: str) -> Sequence[tuple[str, str]]:
    """Return who may do what with a table, beside its owner. Names are quoted as SQL needs it."""
    cursor.execute(_GRANTS_SQL, [table])
    found: Sequence[tuple[str, str]] = cursor.fetchall()
    return found


def attach(cursor: Any, name: str, bounds: str) -> None:
    cursor.execute(f"ALTER TABLE {LEDGER} ATTACH PARTITION {name} {bounds}")


def bounds_of(month: date, end: date) -> str:
    return f"FOR VALUES FROM ('{first_id(month)}') TO ('{first_id(end)}')"


def _fetch_one(statement: str, values: Sequence[Any]) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()


_PARTITIONS_SQL: Final = """
SELECT relname, pg_get_expr(relpartbound, pg_class.oid), reltuples, pg_total_relation_size(pg_class.oid)
FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = %s::regclass
"""

_OWNER_OF_SQL: Final = """
SELECT pg_get_userbyid(relowner), relforcerowsecurity FROM pg_class WHERE oid = %s::regclass
"""

_GRANTS_SQL: Final = """
SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, privilege_type
FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = %s::regclass AND grantee <> relowner
"""
