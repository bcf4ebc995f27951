"""The end of an account: nobody signs in with it, no key works, it is in no shared organization.

What it leaves behind is deleted elsewhere, later; this is what must hold at once, in the transaction
of whoever closes it.
"""

from django.db import transaction

from accounts.models import Membership, Organization, Role, User
from amber.lib.errors import Conflict


def close_account(user: User) -> None:
    """Raises Conflict while the user is the only owner of a shared organization."""
    with transaction.atomic():
        shared = Organization.objects.filter(memberships__user=user, personal=False)
        locked = list(shared.select_for_update(no_key=True, of=("self",)).order_by("pk"))
        alone = [each.name for each in locked if not _has_other_owner(each, user)]
        if alone:
            raise Conflict(
                f"You are the only owner of {', '.join(alone)}: make somebody else owner, or delete "
                "it first."
            )
        Membership.objects.filter(user=user, organization__in=locked).delete()
        User.objects.filter(pk=user.pk).update(is_active=False)


def _has_other_owner(organization: Organization, user: User) -> bool:
    """Or is not owned by this user at all."""
    owners = Membership.objects.filter(organization=organization, role=Role.OWNER)
    mine = owners.filter(user=user).exists()
    return not mine or owners.exclude(user=user).exists()
