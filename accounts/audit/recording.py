"""Append events to the audit log of an organization, in the transaction of the act they tell of.

Call `record` last in that transaction: it locks the end of the organization's chain until the
commit, and whoever waits for something else meanwhile could wait for ever. It is for rare acts; a
question or a message has no event. It keeps no key, token, prompt or message, and of people their
ids alone.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Model

from accounts.audit.chain import canonical_form, hash_form
from accounts.audit_actions import AuditAction
from accounts.models import AuditChain, AuditEvent, GroupMember, Membership, User
from accounts.principal import Actor

Detail = Mapping[str, str | int | bool | list[str] | None]
"""Fractions are left out: Postgres would give them back in another form than was hashed."""

MAX_LABEL_CHARS: Final = 200
_MEMBERSHIPS: Final = (Membership, GroupMember)

# Locks the organization, then the end of its chain, as its deletion does. `clock_timestamp` is read
# with the lock: the time of a transaction that waited would be older than the event before.
_TAKE_NUMBER_SQL: Final = """
    INSERT INTO accounts_auditchain AS chain (organization_id, number, hash)
    SELECT id, 1, '' FROM accounts_organization WHERE id = %s FOR KEY SHARE
    ON CONFLICT (organization_id) DO UPDATE SET number = chain.number + 1
    RETURNING number, hash, clock_timestamp()
"""


def record(
    by: Actor,
    action: AuditAction,
    target: Model,
    *,
    organization_id: UUID,
    label: str = "",
    detail: Detail | None = None,
) -> int:
    """Append an event about `target` and return its number; 0 and none if the organization is gone.

    `label` is the target's name, as long as that is no person's; of memberships, also of groups,
    the person is the target. Outside of a transaction the event gets one of its own. Three queries.
    """
    about = target.user_id if isinstance(target, _MEMBERSHIPS) else target.pk
    meta = User._meta if isinstance(target, _MEMBERSHIPS) else target._meta
    with transaction.atomic(savepoint=False):
        taken = _take_number(organization_id)
        if taken is None:
            return 0
        number, previous, now = taken
        event = AuditEvent(
            organization_id=organization_id,
            number=number,
            created_at=now,
            action=action,
            actor_kind=by.kind,
            actor_user_id=by.user_id,
            actor_key_id=by.key_id,
            target_kind=meta.verbose_name_raw.lower().replace(" ", "_"),
            target_id=about,
            target_label=label[:MAX_LABEL_CHARS],
            address=by.address,
            detail=dict(detail or {}),
            previous_hash=previous,
        )
        event.hash = hash_form(canonical_form(event))
        event.save(force_insert=True)
        AuditChain.objects.filter(pk=organization_id).update(hash=event.hash)
    return number


def record_switch(
    by: Actor, row: Any, actions: tuple[AuditAction, AuditAction], *, before: bool, after: bool
) -> None:
    """Append an event if a switch of a tenant's named row was changed.

    `actions` are the names of switching it on, and of switching it off.
    """
    if before != after:
        action = actions[0] if after else actions[1]
        record(by, action, row, organization_id=row.organization_id, label=row.name)


def record_for_person(by: Actor, action: AuditAction, user: User) -> None:
    """Append an event about a person to the log of each of their organizations."""
    with transaction.atomic(savepoint=False):
        # All in one order: two who lock several chains could wait for each other otherwise.
        ids = Membership.objects.filter(user=user).order_by("organization_id")
        for organization_id in ids.values_list("organization_id", flat=True):
            record(by, action, user, organization_id=organization_id)


def _take_number(organization_id: UUID) -> tuple[int, str, datetime] | None:
    """Return the next event's number, the hash of the one before, and the time.

    None if there is no such organization.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_NUMBER_SQL, [organization_id])
        taken: tuple[int, str, datetime] | None = cursor.fetchone()
    return taken
