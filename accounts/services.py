"""Change accounts: people, organizations, members, invitations. API keys: `accounts.key_services`.

Every function is one transaction and takes rows that the caller was allowed to reach. What
depends on both sides' roles (only owners touch owners, an organization keeps at least one) is
decided here, under a lock of the organization. Secrets leave once, as the second value returned.
"""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.text import slugify
from redis.exceptions import RedisError

from accounts.audit.recording import record
from accounts.audit_actions import AuditAction
from accounts.closing import close_organization
from accounts.mail.outbox import Recipient, post_mail, sends_mail
from accounts.models import (
    GRANTS,
    ApiKey,
    Invitation,
    MailKind,
    Membership,
    Organization,
    Role,
    User,
)
from accounts.principal import Actor, Principal
from accounts.registry import receive_newcomer
from accounts.sign_in.authentication import ACTIVE_ORGANIZATION
from accounts.sign_in.rates import spend_mail_to_stranger
from amber.lib.database.rows import save_changes
from amber.lib.errors import Conflict, Forbidden, Invalid, Missing, RateLimited
from amber.lib.secrets import sha256_hex

INVITATION_LIFETIME = timedelta(days=7)
"""Long enough for a holiday weekend, short enough that a forgotten mail is harmless."""

INVITATION_TOKEN_BYTES = 32
_NOT_OPEN = (
    "This invitation is not open. It may have been used, withdrawn or expired, or its sender may "
    "no longer invite people to this role. Ask for a new one."
)
SLUG_CHARS = "abcdefghijkmnpqrstuvwxyz23456789"

logger = structlog.get_logger(__name__)


# -- People ------------------------------------------------------------------------------------


def sign_up(
    email: str,
    *,
    password: str | None = None,
    name: str = "",
    time_zone: str = "UTC",
    operator: bool = False,
) -> User:
    """Create an account for an operator, with its personal organization; the address is believed.

    Without a password nobody signs in by password. `operator` gives the rights of the admin
    pages. The strength of the password is not judged here. Raises Invalid, Conflict.
    """
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as exc:
        raise Invalid(fields={"email": exc.messages})
    try:
        with transaction.atomic(durable=True):
            user = User.objects.create_user(
                email,
                password,
                name=name,
                time_zone=time_zone,
                is_staff=operator,
                is_superuser=operator,
            )
            EmailAddress.objects.create(user=user, email=email, verified=True, primary=True)
            give_personal_organization(user)
    except IntegrityError:
        raise Conflict(f"{email} already has an account.")
    return user


def give_personal_organization(user: User) -> None:
    """Create the user's personal organization, unless there is one.

    Part of the caller's transaction: whoever signs up gets both or none.
    """
    with transaction.atomic():
        owned = Membership.objects.filter(user=user, role=Role.OWNER, organization__personal=True)
        if not owned.exists():
            _create_organization(
                user, name=user.name or user.email.partition("@")[0], personal=True
            )


@transaction.atomic(durable=True)
def edit_user(user: User, *, changes: Mapping[str, Any]) -> User:
    return save_changes(user, changes)


def switch_organization(session: SessionBase, *, organization_id: UUID) -> None:
    """Let later requests of this session act in that organization, while the user is in it."""
    session[ACTIVE_ORGANIZATION] = str(organization_id)


# -- Organizations -----------------------------------------------------------------------------


@transaction.atomic(durable=True)
def create_organization(user: User, *, name: str) -> Organization:
    """Create an organization that the user owns. Raises Conflict if they own as many as people may."""
    if not user.is_staff:
        _check_organizations_of(user)
    return _create_organization(user, name=name, personal=False)


@transaction.atomic(durable=True)
def edit_organization(
    organization: Organization, *, changes: Mapping[str, Any], by: Actor
) -> Organization:
    save_changes(organization, changes)
    if changes:
        record(
            by,
            AuditAction.ORGANIZATION_CHANGED,
            organization,
            organization_id=organization.pk,
            detail={"fields": sorted(changes), **_policies(changes)},
        )
    return organization


def _policies(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the changes whose new values are part of the audit log."""
    return {name: changes[name] for name in ("trace_content",) if name in changes}


@transaction.atomic(durable=True)
def delete_organization(organization: Organization) -> None:
    """Hide it at once; everything in it is deleted in the background.

    Raises Forbidden for a personal one.
    """
    if organization.personal:
        raise Forbidden("A personal organization is deleted only with its account.")
    close_organization(organization)


@transaction.atomic(durable=True)
def join_organization(
    user: User, *, organization: Organization, by: Actor, role: str = Role.MEMBER
) -> Membership:
    """Add a member without an invitation, for operators. A member already keeps their role."""
    return _add_member(user, organization_id=organization.pk, role=role, by=by)


# -- Members -----------------------------------------------------------------------------------


@transaction.atomic(durable=True)
def change_role(membership: Membership, *, role: str, by: Principal) -> Membership:
    """Change the role, and withdraw invitations that the member may no longer send.

    Raises Forbidden, Conflict (the last owner).
    """
    membership = _lock_membership(membership)
    _check_authority(by, over=membership.role)
    _check_authority(by, over=role)
    _check_personal(membership.organization, role)
    if role != Role.OWNER:
        _check_other_owner(membership)
    Invitation.objects.sent_by(membership).end(beyond=role)
    before = membership.role
    save_changes(membership, {"role": role})
    if role != before:
        record(
            by.actor,
            AuditAction.MEMBER_ROLE_CHANGED,
            membership,
            organization_id=membership.organization_id,
            detail={"role": role, "before": before},
        )
    return membership


@transaction.atomic(durable=True)
def remove_member(membership: Membership, *, by: Principal) -> None:
    """Remove a member, or let one leave.

    Their keys in this organization are revoked for good, and their invitations to it withdrawn.

    Raises Forbidden, Conflict (the last owner).
    """
    membership = _lock_membership(membership)
    if membership.user_id != by.user_id:
        _check_authority(by, over=membership.role)
    _check_other_owner(membership)
    organization_id = membership.organization_id
    unrevoked = ApiKey.objects.filter(
        organization_id=organization_id, user_id=membership.user_id, revoked_at__isnull=True
    )
    keys = list(unrevoked.select_for_update())
    ApiKey.objects.filter(pk__in=[key.pk for key in keys]).update(revoked_at=timezone.now())
    Invitation.objects.sent_by(membership).end()
    Membership.objects.filter(pk=membership.pk).delete()
    for key in keys:
        revoked = AuditAction.KEY_REVOKED
        record(by.actor, revoked, key, organization_id=organization_id, label=key.name)
    record(
        by.actor,
        AuditAction.MEMBER_REMOVED,
        membership,
        organization_id=organization_id,
        detail={"role": membership.role, "left": membership.user_id == by.user_id},
    )


# -- Invitations -------------------------------------------------------------------------------


def invite(
    organization: Organization, *, email: str, role: str, by: Principal
) -> tuple[Invitation, str]:
    """Return an invitation and its token, which is kept nowhere. Replaces an open one.

    The link is mailed where mail is sent and the inviter's rate allows it (`is_mailed`).

    Raises Forbidden, Conflict.
    """
    _check_authority(by, over=role)
    _check_personal(organization, role)
    is_mailed = _may_mail(by)
    token = secrets.token_urlsafe(INVITATION_TOKEN_BYTES)
    try:
        with transaction.atomic(durable=True):
            if organization.memberships.filter(user__in=User.objects.with_email(email)).exists():
                raise Conflict(f"{email} is already a member.")
            Invitation.objects.filter(
                organization=organization, email=email.lower(), accepted_at=None
            ).delete()
            invitation = Invitation.objects.create(
                organization=organization,
                email=email.lower(),
                role=role,
                token_sha256=sha256_hex(token),
                invited_by=by.user,
                expires_at=timezone.now() + INVITATION_LIFETIME,
                is_mailed=is_mailed,
            )
            if is_mailed:
                _mail_invitation(invitation, token)
            record(
                by.actor,
                AuditAction.MEMBER_INVITED,
                invitation,
                organization_id=organization.pk,
                detail={"role": role},
            )
    except IntegrityError:
        raise Conflict(f"{email} is being invited right now.")
    return invitation, token


@transaction.atomic(durable=True)
def find_invitation(user: User, *, token: str) -> Invitation:
    """Return the invitation before the user answers it. Raises as `accept_invitation`."""
    return _open_invitation(user, token)


@transaction.atomic(durable=True)
def accept_invitation(user: User, *, token: str, by: Actor) -> Membership:
    """Make the user a member.

    Raises Missing (no such open invitation, or its sender may not give the role any more) and
    Forbidden (it is for another address).
    """
    invitation = _open_invitation(user, token)
    save_changes(invitation, {"accepted_at": timezone.now()})
    return _add_member(
        user,
        organization_id=invitation.organization_id,
        role=invitation.role,
        by=by,
        invitation=invitation,
    )


@transaction.atomic(durable=True)
def decline_invitation(user: User, *, token: str) -> None:
    """Delete the invitation. Raises as `accept_invitation`."""
    _open_invitation(user, token).delete()


@transaction.atomic(durable=True)
def revoke_invitation(invitation: Invitation) -> None:
    invitation.delete()


# -- Mails -------------------------------------------------------------------------------------


def _may_mail(by: Principal) -> bool:
    """Whether an invitation may be mailed now; without Redis none is, as nobody counts them."""
    if by.user_id is None or not sends_mail():
        return False
    try:
        spend_mail_to_stranger(by.user_id)
    except (RateLimited, RedisError, OSError) as error:
        logger.warning("invitation_not_mailed", reason=type(error).__name__)
        return False
    return True


def _mail_invitation(invitation: Invitation, token: str) -> None:
    """Mail the link, in the language of whoever has the address, or else of the inviter."""
    email = invitation.email
    invited = User.objects.with_email(email).only("language").first()
    person = invited or invitation.invited_by
    post_mail(
        MailKind.INVITATION,
        Recipient(email, language=person.language if person else ""),
        cause=f"invitation:{invitation.pk}",
        organization_id=invitation.organization_id,
        details={
            "organization": invitation.organization.name,
            "inviter": invitation.inviter,
            "until": f"{invitation.expires_at:%Y-%m-%d}",
            "token": token,
        },
    )


# -- Shared ------------------------------------------------------------------------------------


def _create_organization(user: User, *, name: str, personal: bool) -> Organization:
    suffix = get_random_string(8, SLUG_CHARS)
    organization = Organization.objects.create(
        name=name,
        slug=f"{slugify(name)[:60] or 'organization'}-{suffix}",
        personal=personal,
    )
    Membership.objects.create(organization=organization, user=user, role=Role.OWNER)
    if not user.is_staff:
        receive_newcomer(organization.pk)
    return organization


def _check_organizations_of(user: User) -> None:
    """Raise Conflict if the user owns as many as people may. Two queries; two at once count in turn."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    owned = Membership.objects.filter(
        user=user, role=Role.OWNER, organization__personal=False, organization__deleted_at=None
    )
    if owned.count() >= settings.AMBER_MAX_ORGANIZATIONS:
        raise Conflict(
            f"You have reached the limit of {settings.AMBER_MAX_ORGANIZATIONS} organizations that one "
            "person may own."
        )


def _add_member(
    user: User,
    *,
    organization_id: UUID,
    role: str,
    by: Actor,
    invitation: Invitation | None = None,
) -> Membership:
    """Return the membership, a new one or the one there is. Call it last: it is recorded."""
    membership: Membership
    membership, is_new = Membership.objects.get_or_create(
        organization_id=organization_id, user=user, defaults={"role": role}
    )
    if is_new:
        # One that was made or rotated in the moment in which its member was removed escaped that.
        leftovers = ApiKey.objects.filter(organization_id=organization_id, user=user)
        leftovers.filter(revoked_at=None).update(revoked_at=timezone.now())
        detail = {"role": role} | ({"invitation_id": str(invitation.pk)} if invitation else {})
        joined = AuditAction.MEMBER_JOINED
        record(by, joined, membership, organization_id=organization_id, detail=detail)
    return membership


def _lock_members(organization_id: UUID) -> None:
    """Lock the organization: nobody else changes its members until the transaction ends."""
    Organization.objects.select_for_update(no_key=True).get(pk=organization_id)


def _lock_membership(membership: Membership) -> Membership:
    """Return the row as it is now, with its organization locked. Raises Missing."""
    _lock_members(membership.organization_id)
    found: Membership | None = (
        Membership.objects.select_related("organization", "user").filter(pk=membership.pk).first()
    )
    if found is None:
        raise Missing
    return found


def _check_authority(by: Principal, *, over: str) -> None:
    """Raise Forbidden unless `by` may act over that role: admins over all but owners."""
    if not by.is_admin or over not in GRANTS[by.role]:
        raise Forbidden("Your role in this organization does not allow that.")


def _check_personal(organization: Organization, role: str) -> None:
    if organization.personal and role == Role.OWNER:
        raise Forbidden("A personal organization has only one owner.")


def _check_other_owner(membership: Membership) -> None:
    """Raise Conflict if this is the last owner. Call it with the organization locked."""
    others = Membership.objects.filter(
        organization_id=membership.organization_id, role=Role.OWNER
    ).exclude(pk=membership.pk)
    if membership.role == Role.OWNER and not others.exists():
        raise Conflict("An organization needs an owner. Make someone else an owner first.")


def _open_invitation(user: User, token: str) -> Invitation:
    """Return the user's open invitation, locked. Raises Missing, Forbidden."""
    named = Invitation.objects.filter(token_sha256=sha256_hex(token))
    organization_id = named.values_list("organization_id", flat=True).first()
    if organization_id is None:
        raise Missing(_NOT_OPEN)
    # The organization first, as where invitations end: the other order could deadlock.
    _lock_members(organization_id)
    invitation: Invitation | None = named.open().select_for_update().first()
    if invitation is None:
        raise Missing(_NOT_OPEN)
    if invitation.email.lower() != user.email.lower():
        raise Forbidden("This invitation is for another email address.")
    return invitation
