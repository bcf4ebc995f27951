"""Change groups: who is in them, and what they are granted.

Every function is one transaction and takes rows that the caller was allowed to reach. That groups,
their members and what they are granted stay in one organization, the database sees to.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from accounts.models import Grant, GrantQuerySet, Group, GroupMember, Membership
from amber.lib.errors import Conflict


def create_group(organization_id: UUID, *, name: str, description: str = "") -> Group:
    """Create an empty group. Raises Conflict for a name that another group has."""
    group = Group(organization_id=organization_id, name=name, description=description)
    try:
        with transaction.atomic(durable=True):
            group.save(force_insert=True)
    except IntegrityError:
        raise _name_conflict(name)
    return group


def edit_group(group: Group, *, changes: Mapping[str, Any]) -> Group:
    """Write the changed columns only. Raises Conflict for a name that another group has."""
    for field, value in changes.items():
        setattr(group, field, value)
    try:
        with transaction.atomic(durable=True):
            group.save(update_fields=[*changes, "updated_at"])
    except IntegrityError:
        raise _name_conflict(group.name)
    return group


@transaction.atomic(durable=True)
def delete_group(group: Group) -> int:
    """Delete the group with its grants, and return how many those were.

    Raises Conflict while it alone keeps something without owner within reach.
    """
    ended = sum(_end(kind.objects.filter(group=group)) for kind in Grant.__subclasses__())
    group.delete()
    return ended


def add_group_member(group: Group, *, membership: Membership) -> GroupMember:
    """Let a member of the organization into the group; whoever is in it stays so.

    Raises Conflict if the group is deleted, or the membership ended, in the same moment.
    """
    try:
        with transaction.atomic(durable=True):
            member, _ = GroupMember.objects.get_or_create(
                group=group,
                user_id=membership.user_id,
                defaults={"organization_id": group.organization_id},
            )
    except IntegrityError:
        raise Conflict
    found: GroupMember = member
    return found


@transaction.atomic(durable=True)
def remove_group_member(member: GroupMember) -> None:
    """Take somebody out of the group, or let them leave. What it is granted ends for them."""
    member.delete()


def grant_right(row: Any, *, group: Group, right: str) -> Grant:
    """Grant a group this right to an assistant, library or tool, in place of one it had.

    Raises Conflict if either is deleted in the same moment.
    """
    try:
        with transaction.atomic(durable=True):
            grant, _ = row.grants.update_or_create(
                group=group, defaults={"right": right, "organization_id": row.organization_id}
            )
    except IntegrityError:
        raise Conflict
    given: Grant = grant
    return given


@transaction.atomic(durable=True)
def end_grant(grant: Grant) -> None:
    """End the group's right. Raises Conflict if that keeps a row without owner within reach."""
    _end(type(grant).objects.filter(pk=grant.pk))


def _end(grants: GrantQuerySet) -> int:
    """Delete these grants of one kind, and return how many they were.

    Raises Conflict, for the caller's transaction to undo it, if nobody had a right to a row then.
    """
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


def _name_conflict(name: str) -> Conflict:
    text = f"A group of the organization is already called “{name}”."
    return Conflict(text, fields={"name": [text]})
