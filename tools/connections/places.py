"""Limit the requests that wait for tools' services, so that services which hang delay nobody else.

Such a request holds a thread of the web process for up to 45 seconds, and the largest OpenAPI
document (10 MB) costs 55 MB and a second of processor time to read (measured). One organization
has at most half of the places. Each process counts its own; nobody queues, but is told to retry.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from django.conf import settings

from amber.lib.errors import RateLimited, Unavailable

RETRY_AFTER_SECONDS: Final = 5
"""Healthy services answer in less."""

_lock = threading.Lock()
_taken: Counter[UUID] = Counter()


@contextmanager
def place_for(organization_id: UUID) -> Iterator[None]:
    """Hold a place for the `with` block.

    Raises RateLimited if the organization has its share, Unavailable if no place is free.
    """
    _take(organization_id)
    try:
        yield
    finally:
        with _lock:
            _taken[organization_id] -= 1
            if not _taken[organization_id]:
                del _taken[organization_id]


def _take(organization_id: UUID) -> None:
    most = settings.AMBER_TOOL_SERVICES_AT_ONCE
    share = (most + 1) // 2
    with _lock:
        if _taken[organization_id] >= share:
            raise RateLimited(
                f"Your organization is already waiting for {share} tool services to answer. "
                f"Try again in {RETRY_AFTER_SECONDS} seconds.",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        if _taken.total() >= most:
            raise Unavailable(
                "Too many requests are waiting for slow tool services. Try again in "
                f"{RETRY_AFTER_SECONDS} seconds.",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        _taken[organization_id] += 1
