"""Check again that credentials are valid while their holders follow a stream.

A request's credential is checked when it comes (`accounts.sign_in.authentication`). A stream
outlives that, and asks here every few seconds, for all its viewers at once. That a guest's token
may expire meanwhile is not looked at: a turn is over in minutes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from accounts.models import ApiKey, Membership, User
from accounts.principal import BrowserSession, Principal
from accounts.registry import public_assistants


@dataclass(frozen=True, slots=True)
class Credential:
    """A user's key or session in an organization; neither for whoever started a turn by session."""

    organization_id: UUID
    user_id: UUID
    key_id: UUID | None = None
    session: BrowserSession | None = None


@dataclass(frozen=True, slots=True)
class GuestCredential:
    """A guest token's assistant, and its epoch."""

    assistant_id: UUID
    epoch: int


AnyCredential = Credential | GuestCredential


def credential_of(principal: Principal) -> AnyCredential | None:
    """Return what to check later; None for a principal that is neither user nor guest."""
    if principal.user_id is None:
        assistant_id = principal.assistant_id
        return GuestCredential(assistant_id, principal.guest_epoch) if assistant_id else None
    key_id = principal.key.pk if principal.key else None
    return Credential(principal.organization_id, principal.user_id, key_id, principal.session)


def still_good(credentials: Collection[AnyCredential]) -> set[AnyCredential]:
    """Return those that are still valid, of people and of guests. At most six queries."""
    people = {each for each in credentials if isinstance(each, Credential)}
    guests = {each for each in credentials if isinstance(each, GuestCredential)}
    return {*_good_people(people), *_good_guests(guests)}


def _good_guests(credentials: Collection[GuestCredential]) -> set[GuestCredential]:
    """Return those whose assistant is public and still has the token's epoch. One query."""
    if not credentials:
        return set()
    taking = public_assistants({each.assistant_id for each in credentials})
    epochs = {pk: assistant.guest_epoch for pk, assistant in taking.items()}
    return {each for each in credentials if epochs.get(each.assistant_id) == each.epoch}


def _good_people(credentials: Collection[Credential]) -> set[Credential]:
    """Return those whose key or session is live, and whose user is active and a member.

    Operators who are signed in are let in everywhere (the admin tries assistants of all). One
    query, one more with keys, two more with sessions, one more for people who are not members.
    """
    if not credentials:
        return set()
    members = _members({each.user_id for each in credentials})
    live = _live({each.key_id for each in credentials if each.key_id is not None})
    in_place = {c for c in credentials if (c.organization_id, c.user_id) in members}
    strangers = {c for c in credentials if c not in in_place and c.key_id is None}
    operators = _operators({each.user_id for each in strangers})
    welcome = in_place | {each for each in strangers if each.user_id in operators}
    signed_out = _signed_out({(each.user_id, each.session) for each in welcome if each.session})
    return {
        each
        for each in welcome
        if (each.key_id is None or each.key_id in live)
        and (each.user_id, each.session) not in signed_out
    }


def _members(user_ids: Collection[UUID]) -> set[tuple[UUID, UUID]]:
    """Return pairs of organization and active user."""
    rows = Membership.objects.filter(user_id__in=user_ids, user__is_active=True)
    return set(rows.values_list("organization_id", "user_id"))


def _live(key_ids: Collection[UUID]) -> set[UUID]:
    if not key_ids:
        return set()
    return set(ApiKey.objects.live().filter(pk__in=key_ids).values_list("pk", flat=True))


def _signed_out(
    sessions: Collection[tuple[UUID, BrowserSession]],
) -> set[tuple[UUID, BrowserSession]]:
    """Return those whose row is gone or expired, or whose user's password changed. Two queries."""
    if not sessions:
        return set()
    rows = Session.objects.filter(
        session_key__in={session.key for _, session in sessions}, expire_date__gt=timezone.now()
    )
    # A session whose user has a new password stays stored until it is used: the row does not tell.
    stored = set(rows.values_list("session_key", flat=True))
    users = User.objects.filter(pk__in={user_id for user_id, _ in sessions}).only("password")
    hashes = {user.pk: user.get_session_auth_hash() for user in users}
    return {
        (user_id, session)
        for user_id, session in sessions
        if session.key not in stored
        or not constant_time_compare(session.password_hash, hashes.get(user_id, ""))
    }


def _operators(user_ids: Collection[UUID]) -> set[UUID]:
    if not user_ids:
        return set()
    staff = User.objects.filter(pk__in=user_ids, is_staff=True, is_active=True)
    return set(staff.values_list("pk", flat=True))
