"""Claim the turn that is next: fairly between organizations, and within one between its people.

A message of the queue only says that some turn waits; the worker that receives it takes the turn that is
next:

1. The organization with the fewest running turns for its weight; of equal ones, the one after the one that
   this process served last. Organizations at their limit of running turns (`AMBER_TURNS_PER_ORGANIZATION`,
   or their own number) are passed over.
2. In it, the person after the one served last. All guests of an organization's page count as one person,
   and are served in turn among themselves: however many they are, members wait for one of them.
3. Of that person, the oldest turn.

So a thousand questions of one organization, or of one person, delay others by one turn.

However long the queue is, a claim looks at about WINDOW organizations behind the one that was served last, and
as many from the first one on, each by index probes, and counts the running turns once. Workers that claim in the
same moment do not see each other's turns: each may take one too many.
"""

import threading
import time
from collections import OrderedDict
from typing import Any, Final
from uuid import UUID, uuid4

import structlog
from django.conf import settings
from django.db import connection
from redis.exceptions import RedisError

from accounts.sign_in.guest_tokens import GUEST_PREFIX
from amber.lib import redis as amber_redis
from amber.lib.database.round_trips import in_one_trip
from chats.events.stream import control_channel
from chats.models import Turn
from engine.events import TurnStatus

logger = structlog.get_logger(__name__)

WINDOW: Final = 64
"""Organizations that a claim compares on either side of the one served last. Few wait at once."""
PEOPLE_REMEMBERED: Final = 64
"""Organizations of which a process knows whom it served last."""
WAITING_MESSAGE: Final = b"turns wait"
"""Published on the control channel when turns wait whose message is used up: who ends a turn takes one."""
# While an organization is at its limit each claim is in vain, and would tell all workers.
_TELL_SECONDS: Final = 1.0

_SUBJECT: Final = "COALESCE(t.guest_id, (t.user_id)::text, '')"
"""Whose turn it is, as the index `turn_waiting` has it."""
AFTER_GUESTS: Final = f"{GUEST_PREFIX}g"
"""A subject behind those of all guests, whose ids go on in hexadecimal, and before anybody else's."""
LIMIT_SQL: Final = "NULLIF(COALESCE(o.turns_at_once, %(most)s), 0)"
# Postgres cannot skip equal keys of an index: the recursion asks for the next organization, and the
# next, a probe each, where DISTINCT would read every turn that waits.
_ORGANIZATIONS_SQL: Final = """
{name} AS (
    (SELECT t.organization_id AS id, {place} AS place FROM chats_turn t
     WHERE t.status = 'queued' AND {condition} ORDER BY t.organization_id LIMIT 1)
    UNION ALL
    SELECT (SELECT t.organization_id FROM chats_turn t
            WHERE t.status = 'queued' AND {condition} AND t.organization_id > {name}.id
            ORDER BY t.organization_id LIMIT 1), place + 1
    FROM {name} WHERE id IS NOT NULL AND place < {place} + %(window)s
)"""
# Claims at the same moment skip each other's turns. A turn that was claimed since the statement began
# is read again as it is locked, is queued no more, and LIMIT takes the next one.
_TURN_SQL: Final = """
    SELECT t.id, {subject} AS subject FROM chats_turn t
    WHERE t.status = 'queued' AND t.organization_id = c.id AND {condition}
    ORDER BY {subject}, t.created_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED"""
RUNNING_SQL: Final = """
    SELECT count(*) AS turns FROM chats_turn r WHERE r.status = 'running' AND r.organization_id = o.id"""
_CLAIM_TEMPLATE: Final = """
WITH RECURSIVE
{later},
{sooner},
running AS (
    SELECT r.organization_id AS id, count(*) AS turns FROM chats_turn r
    WHERE r.status = 'running' GROUP BY r.organization_id
),
picked AS (
    SELECT COALESCE(g.id, a.id, b.id) AS id, COALESCE(g.subject, a.subject, b.subject) AS subject
    FROM (
        SELECT o.id, COALESCE(served.subject, '') AS last, COALESCE(served.guest, '') AS last_guest
        FROM (SELECT * FROM later UNION ALL SELECT * FROM sooner) w
        JOIN accounts_organization o ON o.id = w.id
        LEFT JOIN running ON running.id = o.id
        LEFT JOIN unnest(%(organizations)s::uuid[], %(people)s::text[], %(guests)s::text[])
            AS served(id, subject, guest) ON served.id = o.id
        WHERE {limit} IS NULL OR COALESCE(running.turns, 0) < {limit}
        ORDER BY COALESCE(running.turns, 0)::float / GREATEST(o.turn_weight, 1), w.place
    ) c
    LEFT JOIN LATERAL ({next_person}) a
        ON true
    LEFT JOIN LATERAL ({first_person}) b ON true
    LEFT JOIN LATERAL ({next_guest}) g ON true
    WHERE a.id IS NOT NULL OR b.id IS NOT NULL
    LIMIT 1
)
UPDATE chats_turn SET
    status = 'running', attempt = attempt + 1, fence = fence + 1, worker = %(worker)s,
    lease_until = statement_timestamp() + make_interval(secs => %(lease)s),
    started_at = coalesce(started_at, statement_timestamp()), updated_at = statement_timestamp()
FROM picked WHERE chats_turn.id = picked.id
RETURNING chats_turn.id, picked.subject, {tenant}
"""
CLAIM_SQL: Final = _CLAIM_TEMPLATE.format(
    later=_ORGANIZATIONS_SQL.format(
        name="later", place=0, condition="t.organization_id > %(last)s"
    ),
    sooner=_ORGANIZATIONS_SQL.format(
        name="sooner",
        place=1_000,  # behind all of `later`, whose places end at WINDOW
        condition="t.organization_id <= %(last)s",
    ),
    limit=LIMIT_SQL,
    next_person=_TURN_SQL.format(subject=_SUBJECT, condition=f"{_SUBJECT} > c.last"),
    first_person=_TURN_SQL.format(subject=_SUBJECT, condition="a.id IS NULL"),
    next_guest=_TURN_SQL.format(
        subject=_SUBJECT,
        # Asked for only if the person is a guest; GREATEST for when none was served before.
        condition="starts_with(COALESCE(a.subject, b.subject), %(prefix)s)"
        f" AND {_SUBJECT} > GREATEST(c.last_guest, %(prefix)s) AND {_SUBJECT} < %(after_guests)s",
    ),
    tenant=", ".join(f"chats_turn.{name}" for name in Turn.TENANT_FIELDS),
)


INDEX_ORDER_SQL: Final = "SELECT set_config('enable_sort', 'off', true)"
"""Has the planner read the index that is in the claim's order. Queued turns are too few for its statistics, so that
it might read and sort all of them again for each organization (measured with 622 queued turns of 64
organizations: 1.1 s and 103,000 pages)."""


class _Order:
    """What this process remembers of whom it served, and whether turns wait for one to end."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last = UUID(int=0)
        self.people: OrderedDict[UUID, str] = OrderedDict()
        self.guests: dict[UUID, str] = {}
        self.are_some_waiting = False
        self.told_at = 0.0

    def note(self, organization_id: UUID, subject: str) -> None:
        self.last = organization_id
        is_guest = subject.startswith(GUEST_PREFIX)
        if is_guest:
            self.guests[organization_id] = subject
        self.people[organization_id] = AFTER_GUESTS if is_guest else subject
        self.people.move_to_end(organization_id)
        if len(self.people) > PEOPLE_REMEMBERED:
            forgotten, _ = self.people.popitem(last=False)
            self.guests.pop(forgotten, None)


_order: Final = _Order()


def claim_next(worker: str) -> tuple[UUID, tuple[Any, ...]] | None:
    """Claim the turn that is next; return its id and TENANT_FIELDS, or None if none may run now.

    Two statements in one trip. If turns wait all the same, three more, and all workers are told.
    """
    with _order.lock:  # two threads that count at once would both take an organization's last place
        found = _claim(worker) or _claim_after_all(worker)
    if found is None:
        return None
    turn_id, _, *whose = found
    return turn_id, tuple(whose)


def note_waiting() -> None:
    """Remember that turns wait for one to end: another worker said so."""
    _order.are_some_waiting = True


def are_some_waiting() -> bool:
    """Return whether whoever has ended a turn should look for another one."""
    return _order.are_some_waiting


def _claim_after_all(worker: str) -> Any:
    """Remember whether turns wait for one to end, and look once more: one may have ended just before."""
    was_known = _order.are_some_waiting
    _order.are_some_waiting = Turn.objects.filter(status=TurnStatus.QUEUED).exists()
    if not _order.are_some_waiting:
        return None
    _tell_workers()
    _order.last = uuid4()  # others, should a whole window have been at its limit
    # If it was known before, whoever has ended a turn since then has looked for another one.
    return None if was_known else _claim(worker)


def _claim(worker: str) -> Any:
    """Claim the turn that is next, and remember whose it was. Two statements."""
    given: dict[str, Any] = {
        "last": _order.last,
        "window": WINDOW,
        "most": settings.AMBER_TURNS_PER_ORGANIZATION,
        "organizations": list(_order.people),
        "people": list(_order.people.values()),
        "guests": [_order.guests.get(pk, "") for pk in _order.people],
        "prefix": GUEST_PREFIX,
        "after_guests": AFTER_GUESTS,
        "worker": worker,
        "lease": settings.AMBER_LEASE_SECONDS,
    }
    with connection.cursor() as settings_cursor, connection.cursor() as cursor:
        with in_one_trip():  # which is one transaction
            settings_cursor.execute(INDEX_ORDER_SQL)
            cursor.execute(CLAIM_SQL, given)
        found = cursor.fetchone()
    if found is not None:
        _order.note(found[2], found[1])
    return found


def _tell_workers() -> None:
    now = time.monotonic()
    if now < _order.told_at + _TELL_SECONDS:
        return
    _order.told_at = now
    try:
        amber_redis.client().publish(control_channel(), WAITING_MESSAGE)
    except (RedisError, OSError) as exc:
        logger.warning("workers_not_told", reason=type(exc).__name__)
