"""Tell who asked a queued turn its place, and why it waits; nothing about other organizations.

Looked up only for a turn that waits: a question that is answered at once costs no query.
"""

from typing import Any, Final

from django.conf import settings
from django.db import connection

from amber.lib.database.tenant import for_whole_organization
from chats.messages.wire import QueueWire
from chats.models import Turn
from chats.turns.claims import LIMIT_SQL, RUNNING_SQL
from engine.events import TurnStatus

MOST: Final = 1_000
"""The furthest place that is counted."""
BUSY: Final = "workers_busy"
LIMIT: Final = "organization_limit"


# The place is by age: claims go round between people, so a younger question may be answered first.
_PLACE_TEMPLATE: Final = """
SELECT (
    SELECT count(*) FROM (
        SELECT FROM chats_turn t WHERE t.status = 'queued' AND t.organization_id = o.id
        AND t.created_at <= %(created_at)s LIMIT %(furthest)s
    ) before
), running.turns >= {limit}
FROM accounts_organization o CROSS JOIN LATERAL ({running}) running WHERE o.id = %(organization)s
"""
_PLACE_SQL: Final = _PLACE_TEMPLATE.format(limit=LIMIT_SQL, running=RUNNING_SQL)


def place_of(turn: Turn) -> QueueWire | None:
    """Return the place of a queued turn; None for any other. One query."""
    if turn.status != TurnStatus.QUEUED:
        return None
    given: dict[str, Any] = {
        "created_at": turn.created_at,
        "organization": turn.organization_id,
        "furthest": MOST,
        "most": settings.AMBER_TURNS_PER_ORGANIZATION,
    }
    # Others' questions are counted, too.
    with for_whole_organization(), connection.cursor() as cursor:
        cursor.execute(_PLACE_SQL, given)
        position, is_limited = cursor.fetchone()
    # 0 if the turn was claimed since its row was read.
    return {"position": max(position, 1), "reason": LIMIT if is_limited else BUSY}
