"""Reckon with months, and with the ids that lie in them. Pure.

A UUIDv7 begins with its time, so that a range of ids is a range of time, and the id alone is a key.
A month is the date of its first day, in UTC.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from uuid import UUID

from amber.lib.ids import least_id_at


def month_of(moment: datetime) -> date:
    return moment.astimezone(UTC).date().replace(day=1)


def add_months(month: date, count: int) -> date:
    """Return the month `count` later, or earlier if it is negative."""
    years, index = divmod(month.year * 12 + month.month - 1 + count, 12)
    return date(years, index + 1, 1)


def months_between(first: date, end: date) -> Iterator[date]:
    """Yield the months from `first` to the one before `end`."""
    while first < end:
        yield first
        first = add_months(first, 1)


def start_of(month: date) -> datetime:
    return datetime.combine(month, time(), UTC)


def first_id(month: date) -> UUID:
    """Return the smallest id of the month: the first that is not of the month before."""
    return least_id_at(start_of(month))


def month_of_id(pk: UUID) -> date:
    """Return the month that a UUIDv7 was made in."""
    return month_of(datetime.fromtimestamp((pk.int >> 80) / 1_000, UTC))
