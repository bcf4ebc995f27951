"""Change groups: who is in them, and what they are granted.

Every function is one transaction and takes rows that the caller was allowed to reach. That groups,
their members and what they are granted stay in one organization, the database sees to. The audit
log is told who did it (`by`), unless nothing changed.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from accounts.audit.recording import Detail, record
from accounts.audit_actions import AuditAction
from accounts.models import Grant, GrantQuerySet, Group, GroupMember, Membership
from accounts.principal import Actor
from amber.lib.database.rows import save_changes
from amber.lib.database.tenant import for_whole_organization
from amber.lib.errors import Conflict, FieldText


def create_group(organization_id: UUID, *, name: str, by: Actor, description: str = "") -> Group:
    """Create an empty group. Raises Conflict for a name that another group has."""
    group = Group(organization_id=organization_id, name=name, description=description)
    try:
        with transaction.atomic(durable=True):
            group.save(force_insert=True)
            _record_group(by, AuditAction.GROUP_MADE, group)
    except IntegrityError:
        raise _name_conflict(name)
    return group


def edit_group(group: Group, *, changes: Mapping[str, Any], by: Actor) -> Group:
    """Write the changed columns only. Raises Conflict for a name that another group has."""
    try:
        with transaction.atomic(durable=True):
            save_changes(group, changes)
            if changes:
                _record_group(by, AuditAction.GROUP_CHANGED, group, {"fields": sorted(changes)})
    except IntegrityError:
        raise _name_conflict(group.name)
    return group


@transaction.atomic(durable=True)
def delete_group(group: Group, *, by: Actor) -> int:
    """Delete the group with its grants, and return how many those were.

    Raises Conflict while it alone keeps something without owner within reach.
    """
    ended = sum(_end(kind.objects.filter(group=group)) for kind in Grant.__subclasses__())
    deleted, _ = Group.objects.filter(pk=group.pk).delete()
    if deleted:
        _record_group(by, AuditAction.GROUP_REMOVED, group, {"ended_grants": ended})
    return ended


def add_group_member(group: Group, *, membership: Membership, by: Actor) -> GroupMember:
    """Let a member of the organization into the group; whoever is in it stays so.

    Raises Conflict if the group is deleted, or the membership ended, in the same moment.
    """
    try:
        with transaction.atomic(durable=True):
            member, is_new = GroupMember.objects.get_or_create(
                group=group,
                user_id=membership.user_id,
                defaults={"organization_id": group.organization_id},
            )
            if is_new:
                _record_member(by, AuditAction.GROUP_JOINED, member)
    except IntegrityError:
        raise Conflict
    found: GroupMember = member
    return found


@transaction.atomic(durable=True)
def remove_group_member(member: GroupMember, *, by: Actor) -> None:
    """Take somebody out of the group, or let them leave. What it is granted ends for them."""
    deleted, _ = member.delete()
    if deleted:
        _record_member(by, AuditAction.GROUP_LEFT, member)


def grant_right(row: Any, *, group: Group, right: str, by: Actor) -> Grant:
    """Grant a group this right to an assistant, library or tool, in place of one it had.

    Raises Conflict if either is deleted in the same moment.
    """
    model: type[Grant] = row.grants.model
    try:
        with transaction.atomic(durable=True):
            # Locked, so that the right it had is the one that the log names.
            grant: Grant
            grant, is_new = model.objects.select_for_update().get_or_create(
                **{model.row_name: row},
                group=group,
                defaults={"right": right, "organization_id": row.organization_id},
            )
            before = grant.right
            if is_new:
                _record_grant(by, AuditAction.GRANT_MADE, grant)
            elif before != right:
                grant.right = right
                grant.save(update_fields=["right", "updated_at"])
                _record_grant(by, AuditAction.GRANT_MADE, grant, {"before": before})
    except IntegrityError:
        raise Conflict
    return grant


@transaction.atomic(durable=True)
def end_grant(grant: Grant, *, by: Actor) -> None:
    """End the group's right. Raises Conflict if that keeps a row without owner within reach."""
    if _end(type(grant).objects.filter(pk=grant.pk)):
        _record_grant(by, AuditAction.GRANT_ENDED, grant)


def _end(grants: GrantQuerySet) -> int:
    """Delete these grants of one kind, and return how many they were.

    Raises Conflict, for the caller's transaction to undo it, if nobody had a right to a row then.
    """
    with for_whole_organization():  # rows that nobody has a right to are shown to nobody
        return _end_for_all(grants)


def _end_for_all(grants: GrantQuerySet) -> int:
    row_name = grants.model.row_name
    rows: Any = grants.model._meta.get_field(row_name).related_model._default_manager
    # Locked, so that two who end the last two grants of a row see each other.
    ownerless = rows.filter(pk__in=grants.values(row_name), user__isnull=True)
    locked = ownerless.select_for_update(no_key=True).order_by("pk")
    ids = list(locked.values_list("pk", flat=True))
    ended, _ = grants.delete()
    lost = rows.filter(pk__in=ids).reaching_nobody().first()
    if lost is not None:
        raise Conflict(
            f"The {row_name} “{lost.name}” has no owner, and nobody else could use it then. Share "
            "it with others, or delete it, first."
        )
    return ended


def _record_group(
    by: Actor, action: AuditAction, group: Group, detail: Detail | None = None
) -> None:
    organization_id = group.organization_id
    record(by, action, group, organization_id=organization_id, label=group.name, detail=detail)


def _record_member(by: Actor, action: AuditAction, member: GroupMember) -> None:
    detail = {"group_id": str(member.group_id), "group_name": member.group.name}
    record(by, action, member, organization_id=member.organization_id, detail=detail)


def _record_grant(by: Actor, action: AuditAction, grant: Grant, more: Detail | None = None) -> None:
    """Record what happened to the row: it is the target, the group stands in the detail."""
    row: Any = getattr(grant, grant.row_name)
    group = {"group_id": str(grant.group_id), "group_name": grant.group.name}
    record(
        by,
        action,
        row,
        organization_id=grant.organization_id,
        label=row.name,
        detail={**group, "right": grant.right, **(more or {})},
    )


def _name_conflict(name: str) -> Conflict:
    text = f"A group of the organization is already called “{name}”."
    return Conflict(text, fields={"name": [FieldText(text, "unique")]})
