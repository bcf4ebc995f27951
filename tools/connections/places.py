"""Places for requests that wait for a tool's service: few, so that services which hang hold up nobody else.

Such a request keeps a thread of the web process for up to 45 seconds; the largest OpenAPI document (10 MB)
costs 55 MB and a second of processor time while it is read (measured). One organization has half of the places at most. Counted for this process alone, and nobody
queues: who finds no place is told to come back.
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
"""Services that are well answer in less."""

_lock = threading.Lock()
_taken: Counter[UUID] = Counter()


@contextmanager
def place_for(organization_id: UUID) -> Iterator[None]:
    """Raises RateLimited when the organization has its share, Unavailable when there is no place."""
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
                f"Your organization asks {share} services of tools already, which have not answered. "
                f"Wait for one of them, or try again in {RETRY_AFTER_SECONDS} seconds.",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        if _taken.total() >= most:
            raise Unavailable(
                "Other organizations are waiting for slow services of tools. Try again in "
                f"{RETRY_AFTER_SECONDS} seconds.",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        _taken[organization_id] += 1
