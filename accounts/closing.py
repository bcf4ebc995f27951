"""Close an account or an organization: nobody gets in any more, by session or by key.

Their rows are deleted elsewhere, later. This is what must hold at once, in the transaction of
whoever closes them.
"""

from django.db import transaction
from django.utils import timezone

from accounts.models import Invitation, Membership, Organization, Role, User
from accounts.registry import hide_organization
from amber.lib.errors import Conflict


def close_account(user: User) -> None:
    """Disable the user and end their memberships and invitations.

    Raises Conflict while the user is the only owner of a shared organization.
    """
    with transaction.atomic():
        shared = Organization.objects.filter(memberships__user=user, personal=False)
        locked = list(shared.select_for_update(no_key=True, of=("self",)).order_by("pk"))
        alone = [each.name for each in locked if not _has_other_owner(each, user)]
        if alone:
            raise Conflict(
                f"You are the only owner of {', '.join(alone)}. Make somebody else an owner, or "
                "delete it first."
            )
        Membership.objects.filter(user=user, organization__in=locked).delete()
        Invitation.objects.filter(invited_by=user).end()
        User.objects.filter(pk=user.pk).update(is_active=False)


def close_organization(organization: Organization) -> None:
    """Hide the organization and end its memberships, without which no credential counts."""
    with transaction.atomic():
        Organization.objects.filter(pk=organization.pk).update(deleted_at=timezone.now())
        for model in (Membership, Invitation):
            model.objects.filter(organization=organization).delete()
        hide_organization(organization.pk)


def _has_other_owner(organization: Organization, user: User) -> bool:
    """Return whether somebody else owns it, or this user does not."""
    owners = Membership.objects.filter(organization=organization, role=Role.OWNER)
    mine = owners.filter(user=user).exists()
    return not mine or owners.exclude(user=user).exists()
