"""Refuse new turns of those who ask more than their share while the queue is old.

Each web process looks at the queue now and then: after every LOOK_EVERY questions, and while somebody is
refused with each question, but at most once a second. The queue is old if a turn has waited too long since
it was last queued (an approval queues a turn again).

- An organization is over its share if it has more than one turn, and more than its weight grants it among
  the organizations that have any. One that is alone with several turns always is.
- In such an organization people are refused who have more than one turn, and no fewer than its average. Its
  guests count as one person, as they do in a claim.
- If a person's only turn there has waited too long, everybody in it is refused: a few people are not the cause.
- If an organization waits because it is at its own limit of running turns, no other is refused for that.
"""

import threading
import time
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, connections

from accounts.sign_in.guest_tokens import GUEST_PREFIX
from amber.lib.database.tenant import across_tenants
from amber.lib.errors import RateLimited
from chats.models import Turn
from chats.turns.claims import LIMIT_SQL

logger = structlog.get_logger(__name__)

LOOK_EVERY: Final = 16
"""Questions between two looks at a queue that was young."""
_LOOK_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 10
"""When to come again: an answer or two are over by then."""

# By creation, which has an index, and not by when it was last queued: if even that is not long ago,
# nothing need be counted.
_AGE_SQL: Final = """
SELECT extract(epoch FROM statement_timestamp() - min(created_at)) FROM chats_turn WHERE status = 'queued'
"""
_SHARES_TEMPLATE: Final = """
WITH live AS (
    SELECT t.organization_id AS id, count(*) AS turns, count(*) FILTER (WHERE t.status = 'running') AS running,
        CASE WHEN starts_with(t.guest_id, %(guests)s) THEN %(guests)s
            ELSE COALESCE(t.guest_id, t.user_id::text, '') END AS person,
        COALESCE(min(t.updated_at) FILTER (WHERE t.status = 'queued')
            < statement_timestamp() - make_interval(secs => %(seconds)s), false) AS is_old
    FROM chats_turn t WHERE t.status IN ('queued', 'running') GROUP BY t.organization_id, person
), shares AS (
    SELECT o.id, GREATEST(o.turn_weight, 1) AS weight, sum(live.turns) AS turns, avg(live.turns) AS turns_each,
        bool_or(live.is_old) AS is_old, bool_or(live.is_old AND live.turns = 1) AS is_full,
        COALESCE(sum(live.running) >= {limit}, false) AS is_at_limit
    FROM live JOIN accounts_organization o ON o.id = live.id GROUP BY o.id
)
SELECT s.id, s.is_full,
    array_agg(live.person) FILTER (WHERE live.turns > 1 AND live.turns >= s.turns_each)
FROM shares s JOIN live ON live.id = s.id
WHERE s.turns > 1 AND CASE WHEN (SELECT bool_or(is_old AND NOT is_at_limit) FROM shares)
    THEN s.turns >= (SELECT sum(turns) FROM shares) * s.weight / (SELECT sum(weight) FROM shares)
    ELSE s.is_old END
GROUP BY s.id, s.is_full
"""
_SHARES_SQL: Final = _SHARES_TEMPLATE.format(limit=LIMIT_SQL)

OverShare = Mapping[UUID, frozenset[str] | None]
"""Who is over their share, by organization; None: everybody in it."""


class _Queue:
    """What this process last saw of the queue."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = 0
        # Long ago also on a machine that has just started, whose monotonic clock is near 0.
        self.seen_at = -float(RETRY_SECONDS)
        self.over_share: OverShare = {}

    def count_question(self) -> bool:
        """Count a question; return whether it is time to look at the queue."""
        with self.lock:
            self.asked += 1
            is_due = bool(self.over_share) or self.asked >= LOOK_EVERY
            if not is_due or time.monotonic() < self.seen_at + _LOOK_SECONDS:
                return False
            self.asked, self.seen_at = 0, time.monotonic()
            return True

    def is_over_share(self, turn: Turn) -> bool:
        """Return whether to refuse this turn's person; nobody is, if the last look was long ago."""
        is_new = time.monotonic() < self.seen_at + RETRY_SECONDS
        if not is_new or turn.organization_id not in self.over_share:
            return False
        people = self.over_share[turn.organization_id]
        return people is None or _person_of(turn) in people


def _person_of(turn: Turn) -> str:
    """Return who asks, as _SHARES_SQL calls them."""
    if turn.guest_id:
        return GUEST_PREFIX if turn.guest_id.startswith(GUEST_PREFIX) else turn.guest_id
    return str(turn.user_id or "")


_queue: Final = _Queue()


def refuse_over_share(turn: Turn) -> None:
    """Raise RateLimited (queue_full) if the queue is old, and whoever asks over their share.

    Makes no query, since this thread is in a transaction of the tenant's: another thread looks at the queue.
    """
    if not settings.AMBER_QUEUE_SECONDS:
        return
    if _queue.count_question():
        threading.Thread(target=_look_in_thread, name="look-at-queue", daemon=True).start()
    if _queue.is_over_share(turn):
        raise RateLimited(code="queue_full", retry_after_seconds=RETRY_SECONDS)


def look_at_queue() -> None:
    """Find out who is over their share: one query, or two."""
    # Replaced as a whole, so that it is read without the lock.
    _queue.over_share = _find_over_share()


def _look_in_thread() -> None:
    try:
        look_at_queue()
    except DatabaseError as exc:
        logger.warning("queue_not_seen", reason=type(exc).__name__)
    finally:
        connections.close_all()


def _find_over_share() -> OverShare:
    with across_tenants(), connection.cursor() as cursor:
        cursor.execute(_AGE_SQL)
        (age_seconds,) = cursor.fetchone()
        if (age_seconds or 0) <= settings.AMBER_QUEUE_SECONDS:
            return {}
        given: dict[str, Any] = {
            "guests": GUEST_PREFIX,
            "seconds": settings.AMBER_QUEUE_SECONDS,
            "most": settings.AMBER_TURNS_PER_ORGANIZATION,
        }
        cursor.execute(_SHARES_SQL, given)
        return {
            pk: None if is_full else frozenset(people or ())
            for pk, is_full, people in cursor.fetchall()
        }
