"""Refuse new turns of organizations that ask more than their share while the queue is old.

Each web process looks at the queue now and then, not for each question: never for the first LOOK_EVERY, and while the
queue is old at most once a second. An organization is over its share if it has more turns waiting and running than
its weight grants it among those that have any, and more than one; one that is alone with several always is. Others
are let in.
"""

import threading
import time
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, connections

from amber.lib.database.tenant import across_tenants
from amber.lib.errors import RateLimited

logger = structlog.get_logger(__name__)

LOOK_EVERY: Final = 16
"""Questions between two looks at a queue that was young."""
_LOOK_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 10
"""When to come again: an answer or two are over by then."""

_AGE_SQL: Final = """
SELECT extract(epoch FROM statement_timestamp() - min(created_at)) FROM chats_turn WHERE status = 'queued'
"""
_SHARES_SQL: Final = """
WITH live AS (
    SELECT organization_id AS id, count(*) AS turns FROM chats_turn
    WHERE status IN ('queued', 'running') GROUP BY organization_id
)
SELECT live.id FROM live JOIN accounts_organization o ON o.id = live.id
WHERE live.turns > 1 AND live.turns >= (SELECT sum(turns) FROM live) * GREATEST(o.turn_weight, 1)
    / (SELECT sum(GREATEST(x.turn_weight, 1)) FROM live JOIN accounts_organization x ON x.id = live.id)
"""


class _Queue:
    """What this process last saw of the queue."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = 0
        self.seen_at = -float(RETRY_SECONDS)
        self.over_share: frozenset[UUID] = frozenset()

    def count(self) -> bool:
        """Count a question; return whether it is time to look at the queue."""
        with self.lock:
            self.asked += 1
            is_due = bool(self.over_share) or self.asked >= LOOK_EVERY
            if not is_due or time.monotonic() < self.seen_at + _LOOK_SECONDS:
                return False
            self.asked, self.seen_at = 0, time.monotonic()
            return True

    def is_over_share(self, organization_id: UUID) -> bool:
        """What was seen long ago refuses nobody."""
        is_new = time.monotonic() < self.seen_at + RETRY_SECONDS
        return is_new and organization_id in self.over_share


_queue: Final = _Queue()


def refuse_over_share(organization_id: UUID) -> None:
    """Raise RateLimited (queue_full) if the queue is old, and the organization over its share.

    No query: a thread of its own looks at the queue now and then, since this one is in a transaction of the tenant's.
    """
    if not settings.AMBER_QUEUE_SECONDS:
        return
    if _queue.count():
        threading.Thread(target=_look_and_part, name="look-at-queue", daemon=True).start()
    if _queue.is_over_share(organization_id):
        raise RateLimited(code="queue_full", retry_after_seconds=RETRY_SECONDS)


def look() -> None:
    """Look who is over their share. One query, or two."""
    _queue.over_share = _find_over_share()


def _look_and_part() -> None:
    try:
        look()
    except DatabaseError as exc:
        logger.warning("queue_not_seen", reason=type(exc).__name__)
    finally:
        connections.close_all()


def _find_over_share() -> frozenset[UUID]:
    with across_tenants(), connection.cursor() as cursor:
        cursor.execute(_AGE_SQL)
        (age_seconds,) = cursor.fetchone()
        if (age_seconds or 0) <= settings.AMBER_QUEUE_SECONDS:
            return frozenset()
        cursor.execute(_SHARES_SQL)
        return frozenset(pk for (pk,) in cursor.fetchall())
