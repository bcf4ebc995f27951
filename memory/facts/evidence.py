"""Tell which messages memories rest on, and withdraw messages that are being deleted.

A memory outlives its evidence: it is the person's, who sees and deletes it. A guest has no such
list, so a guest's memory goes with the last message it rests on.
"""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from django.db import connection

from memory.facts.facts import lock_owner
from memory.models import Memory
from memory.owner import Owner

_WITHDRAW_SQL: Final = """
UPDATE memory_memory SET updated_at = now(), evidence = ARRAY(
    SELECT id FROM unnest(evidence) WITH ORDINALITY AS held (id, place)
    WHERE NOT id = ANY(%(ids)s::uuid[]) ORDER BY place
)
WHERE {mine} AND evidence && %(ids)s::uuid[]
RETURNING id, cardinality(evidence)
"""


def evidence_of(owner: Owner) -> set[UUID]:
    """Return the ids of all messages that this owner's memories rest on. One query."""
    held = Memory.objects.filter(**owner.fields).values_list("evidence", flat=True)
    return {message_id for ids in held for message_id in ids}


def withdraw_evidence(owner: Owner, ids: Collection[UUID]) -> None:
    """Remove these messages, which are being deleted, in the caller's transaction.

    A guest's memories that rest on nothing else are deleted.
    """
    if not ids:
        return
    lock_owner(owner)
    with connection.cursor() as cursor:
        cursor.execute(
            _WITHDRAW_SQL.format(mine=owner.condition), {**owner.fields, "ids": list(ids)}
        )
        unsupported = [pk for pk, left in cursor.fetchall() if not left]
    if owner.guest_id is not None:
        Memory.objects.filter(pk__in=unsupported).delete()
