"""Identifiers: UUIDv7, made in the application, so that an id is known before the row exists.

They sort roughly by time; nothing relies on that (message order is parent chain and position).
"""

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    return uuid7()
