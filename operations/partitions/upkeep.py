"""Keep partitions of the ledger for the months to come: a periodic job, and the conversion's last step.

Rows for which there is no partition are taken by the rest; then the job logs an error, makes the
partition, and moves them. On an installation whose ledger is one table the job only removes the
check of a conversion that nobody went on with.
"""

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any, Final

import structlog
from django.db import connection
from django.utils import timezone

from operations.partitions.bound import ABANDONED, drop_bound, find_bound
from operations.partitions.catalog import (
    LEDGER,
    REST,
    attach,
    bounds_of,
    create_like,
    is_partitioned,
    is_sole,
    list_partitions,
    name_of,
    short_locks,
    shut,
)
from operations.partitions.months import add_months, first_id, month_of, month_of_id, months_between

logger = structlog.get_logger(__name__)

MONTHS_AHEAD: Final = 3
"""So long may the job fail before the rest takes rows."""


def tend_partitions() -> None:
    """Make what is missing. Raises OperationalError if a lock is not free: the job comes again."""
    now = timezone.now()
    if not is_partitioned():
        _drop_abandoned_bound(now)
        return
    for name in make_missing(now):
        logger.info("partition_made", partition=name)
    if strays := count_strays():
        logger.error("usage_without_partition", rows=strays, partition=REST)


def make_missing(now: datetime) -> Iterator[str]:
    """Make the partitions that are missing, and return their names."""
    end = add_months(month_of(now), MONTHS_AHEAD + 1)
    found = list_partitions()
    if not any(part.is_rest for part in found) and _make(REST, "DEFAULT"):
        yield REST
    highs = [part.high for part in found if part.high]
    # A partition ends with the first id of the month after it.
    first = month_of_id(max(highs)) if highs else month_of(now)
    for month in months_between(first, end):
        if _make(name_of(month), bounds_of(month, add_months(month, 1)), month):
            yield name_of(month)


def count_strays() -> int:
    """Count the rows that have no partition of their own, up to 1,000."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM (SELECT FROM {REST} LIMIT 1000) strays")  # noqa: S608
        (count,) = cursor.fetchone()
    return int(count)


def _make(name: str, bounds: str, month: date | None = None) -> bool:
    """Make a partition, whose rows may be among the rest. False if another worker is at it.

    Attaching one keeps nobody from reading and writing the others.
    """
    with short_locks() as cursor:
        if not is_sole(cursor):
            return False
        create_like(cursor, name, like=LEDGER)
        shut(cursor, name)
        if month is not None:
            _take_strays(cursor, name, month)
        attach(cursor, name, bounds)
    return True


def _take_strays(cursor: Any, name: str, month: date) -> None:
    """Move the month's rows from the rest to its partition, under the rest's lock."""
    cursor.execute(f"LOCK TABLE {REST} IN ACCESS EXCLUSIVE MODE")
    cursor.execute(
        f"WITH moved AS (DELETE FROM {REST} WHERE id >= %s AND id < %s RETURNING *)"  # noqa: S608
        f" INSERT INTO {name} SELECT * FROM moved",
        [first_id(month), first_id(add_months(month, 1))],
    )
    if cursor.rowcount:
        logger.error("usage_came_without_partition", rows=cursor.rowcount, partition=name)


def _drop_abandoned_bound(now: datetime) -> None:
    bound = find_bound()
    if bound and bound.is_near(now, ABANDONED):
        logger.warning("partition_conversion_abandoned", month=str(bound.month))
        drop_bound()
