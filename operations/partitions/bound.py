"""Keep a check on the ledger: all its ids lie before a month to come.

With it Postgres makes the table a partition of all that is older without reading it under a lock.
The check has the name that the partition will have, which says the month.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from django.db import IntegrityError, connection, transaction

from operations.partitions.catalog import LEDGER, short_locks
from operations.partitions.months import add_months, first_id, month_of

MARGIN: Final = timedelta(days=7)
"""The check must not meet its month while the table is being read."""

ABANDONED: Final = timedelta(days=2)
"""The check of a conversion that nobody went on with goes so long before its month begins."""


class ForeignIdsError(Exception):
    """There are rows whose ids are no times, or lie after the month."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The check that ids lie before `month`; `is_proven` when the old rows are known to pass it."""

    month: date
    is_proven: bool

    @property
    def name(self) -> str:
        return f"{LEDGER}_until_{self.month:%Y_%m}"

    def is_near(self, now: datetime, margin: timedelta) -> bool:
        return month_of(now + margin) >= self.month


def find_bound() -> Bound | None:
    with connection.cursor() as cursor:
        cursor.execute(_BOUND_SQL, [LEDGER, f"{LEDGER}_until_%"])
        found = cursor.fetchone()
    if found is None:
        return None
    year, month = found[0].removeprefix(f"{LEDGER}_until_").split("_")
    return Bound(date(int(year), int(month), 1), found[1])


def drop_bound() -> None:
    """Take the check away again: rows of its month may come."""
    if bound := find_bound():
        with short_locks() as cursor:
            cursor.execute(f"ALTER TABLE {LEDGER} DROP CONSTRAINT {bound.name}")


def declare_bound(now: datetime) -> None:
    """Check new rows from here on, for a month that is not near."""
    drop_bound()
    bound = Bound(add_months(month_of(now + MARGIN), 1), is_proven=False)
    with short_locks() as cursor:
        cursor.execute(
            f"ALTER TABLE {LEDGER} ADD CONSTRAINT {bound.name}"
            f" CHECK (id < '{first_id(bound.month)}') NOT VALID"
        )


def prove_bound(bound: Bound) -> None:
    """Let Postgres read the table, while everything goes on. Raises ForeignIdsError."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute(f"ALTER TABLE {LEDGER} VALIDATE CONSTRAINT {bound.name}")
    except IntegrityError:
        drop_bound()
        raise ForeignIdsError(
            f"Some rows have ids that are no times, or lie after {bound.month}. Look for them:"  # noqa: S608
            f" SELECT * FROM {LEDGER} WHERE id >= '{first_id(bound.month)}'"
        ) from None


_BOUND_SQL: Final = """
SELECT conname, convalidated FROM pg_constraint
WHERE conrelid = %s::regclass AND contype = 'c' AND conname LIKE %s
"""
