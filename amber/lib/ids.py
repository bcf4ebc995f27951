"""Make identifiers: UUIDv7, made here so that an id is known before the row exists.

They sort roughly by time; nothing relies on that (message order is parent chain and position).
"""

from datetime import datetime
from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    return uuid7()


def least_id_at(moment: datetime) -> UUID:
    """Return the smallest UUIDv7 of that millisecond: a bound for ranges over primary keys."""
    milliseconds = max(0, int(moment.timestamp() * 1_000))
    return UUID(int=(milliseconds << 80) | (7 << 76) | (2 << 62))
