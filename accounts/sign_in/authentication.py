"""Authenticate requests: a session cookie or `Authorization: Bearer <key or guest token>` becomes
a Principal.

Each request reads key, owner and membership anew, so that a revoked key, a removed member or a
deactivated user is out at once; so is a guest whose assistant is no longer public. What a
credential is limited to (scopes, origins, addresses for guests) is checked here too, for every view
alike. A bad credential is 401, never a fall back to another carrier.
"""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

from django.contrib.auth import HASH_SESSION_KEY
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts.audit.actors import client_address
from accounts.models import ApiKey, Membership, Scope, User
from accounts.principal import BrowserSession, Principal
from accounts.registry import PublicAssistant, public_assistant
from accounts.sign_in.applications import key_hash_of_token
from accounts.sign_in.guest_tokens import looks_like_guest_token, read_guest_token
from accounts.sign_in.rates import spend_request
from amber.lib.database.cached_sql import cache_sql
from amber.lib.database.tenant import across_tenants, act_as
from amber.lib.errors import Forbidden, Missing, NotAuthenticated
from amber.lib.rest.api import note_organization
from amber.lib.secrets import is_well_formed, sha256_hex
from amber.lib.tracing import names
from amber.lib.tracing.spans import trace

if TYPE_CHECKING:
    from rest_framework.views import APIView

ACTIVE_ORGANIZATION = "organization_id"
"""Session key of the active organization; the personal one when unset or no longer joined."""

_NOT_FOR_GUESTS = "Guests may only use their assistant's addresses below /api/v1/public/."
_NOT_FOR_BOUND_KEYS = "This key is limited to one assistant and may only use that assistant."
_GUESTS_ONLY = "This address is for guests only. Get a guest token at token/."

_LAST_USED_STEP = timedelta(minutes=1)
"""`last_used_at` is for people: a minute's precision saves a write per request."""


@trace(names.AUTHENTICATE)
def authenticate(
    request: HttpRequest,
    *,
    scope: Scope | None = None,
    for_guests: bool = False,
    for_applications: bool = False,
) -> Principal | None:
    """Return who is asking, or None when the request carries no credential.

    `scope` is what a key needs for this request: by default `read` or `write`, by the method.
    `for_guests`: the address is for guests only; sessions are not looked at. `for_applications`: it
    takes tokens of OAuth, too (`accounts.sign_in.applications`).
    Cost: one query for a key or a guest; for a session two, and Django's for the session's own row.
    Reads the database: call it through `sync_to_async` in an async view.
    Raises NotAuthenticated for a credential that is not valid, Forbidden for a session's unsafe
    request without CSRF token and for a credential used where it may not be, RateLimited.
    """
    header = request.headers.get("Authorization")
    if header is not None:
        with across_tenants():
            principal = _by_header(header, request, scope, for_applications=for_applications)
        if for_guests != (principal.guest_id is not None):
            raise Forbidden(_GUESTS_ONLY if for_guests else _NOT_FOR_GUESTS)
        return _admit(request, principal)
    if for_guests or not isinstance(request.user, User):
        return None
    with across_tenants():
        principal = _by_session(request, request.user)
    _check_csrf(request)
    return _admit(request, principal)


def _admit(request: HttpRequest, principal: Principal) -> Principal:
    """Act for the caller from here on; count what may change something, among it all turns.

    Raises RateLimited.
    """
    act_as(principal.tenant)
    note_organization(request, principal.organization_id)
    if request.method not in SAFE_METHODS:
        spend_request(principal)
    return principal


def principal_in(principal: Principal, organization_id: UUID) -> Principal:
    """Return the same person in another of their organizations, and act for them there from here on;
    a key stays in its own. One query.

    Raises Missing.
    """
    if organization_id == principal.organization_id:
        return principal
    if principal.user is None or principal.key is not None:
        raise Missing
    membership: Membership | None = Membership.objects.filter(
        organization_id=organization_id, user=principal.user
    ).first()
    if membership is None:
        raise Missing
    there = replace(principal, organization_id=organization_id, role=membership.role)
    act_as(there.tenant)
    return there


def _by_header(
    header: str, request: HttpRequest, scope: Scope | None, *, for_applications: bool
) -> Principal:
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer":
        raise NotAuthenticated(code="invalid_credential")
    if looks_like_guest_token(secret):
        return _by_guest_token(secret, request)
    key = _key(secret, request, for_applications=for_applications)
    principal = _principal_of_key(key, request)
    _check_limits(key, request, scope)
    _touch(key)
    return principal


def _by_guest_token(secret: str, request: HttpRequest) -> Principal:
    token = read_guest_token(secret)
    assistant = public_assistant(token.assistant_id) if token else None
    if token is None or assistant is None or not token.is_for(assistant):
        raise NotAuthenticated(code="invalid_credential")
    check_page(assistant, request)
    return Principal(
        organization_id=token.organization_id,
        user=None,
        role="guest",
        guest_id=token.guest_id,
        assistant_id=token.assistant_id,
        guest_epoch=token.epoch,
    )


def check_page(assistant: PublicAssistant, request: HttpRequest) -> None:
    """Raise Forbidden for a page whose origin the assistant does not allow."""
    if not assistant.may_be_used_from(request.headers.get("Origin")):
        raise Forbidden("This assistant may not be used from pages of this origin.")


def _key(secret: str, request: HttpRequest, *, for_applications: bool) -> ApiKey:
    """Return the key with this text. One query, and two for an application's token, behind which
    one stands."""
    sha256 = sha256_hex(secret) if is_well_formed(secret) else ""
    if not sha256 and for_applications:
        sha256 = key_hash_of_token(secret, request)
    found = _live_keys(sha256=sha256) if sha256 else ()
    if not found:
        raise NotAuthenticated(code="invalid_credential")
    (key,) = found
    return key


def _principal_of_key(key: ApiKey, request: HttpRequest) -> Principal:
    return Principal(
        organization_id=key.organization_id,
        user=key.user,
        role=key.role,  # type: ignore[attr-defined]  # the annotation of `_live_keys`
        key=key,
        assistant_id=key.assistant_id,
        find_address=partial(client_address, request),
    )


@cache_sql
def _live_keys(*, sha256: str) -> QuerySet[ApiKey]:
    """Return keys of active members of the key's organization, with the member's `role`."""
    membership = Membership.objects.filter(
        organization_id=OuterRef("organization_id"), user_id=OuterRef("user_id")
    )
    keys: QuerySet[ApiKey] = (
        ApiKey.objects.live()
        .select_related("user")
        .annotate(role=Subquery(membership.values("role")))
        .filter(sha256=sha256, user__is_active=True, role__isnull=False)
    )
    return keys


def _check_limits(key: ApiKey, request: HttpRequest, scope: Scope | None) -> None:
    """Raise Forbidden for a scope or an origin that the key lacks.

    Browsers always send the origin of the calling page; servers send none, and are not limited.
    """
    needed = scope or (Scope.READ if request.method in SAFE_METHODS else Scope.WRITE)
    if key.scopes and needed not in key.scopes:
        raise Forbidden(f"This key lacks the scope {needed}.")
    origin = request.headers.get("Origin")
    if key.origins and origin is not None and origin not in key.origins:
        raise Forbidden("This key may not be used from pages of this origin.")


def _touch(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > _LAST_USED_STEP:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def _by_session(request: HttpRequest, user: User) -> Principal:
    membership = active_membership(user, request.session.get(ACTIVE_ORGANIZATION))
    if membership is None:
        raise NotAuthenticated(
            "Your account is not a member of any organization.", code="invalid_credential"
        )
    return Principal(
        organization_id=membership.organization_id,
        user=user,
        role=membership.role,
        session=browser_session(request),
        find_address=partial(client_address, request),
    )


def browser_session(request: HttpRequest) -> BrowserSession | None:
    """Return the request's session, or None before it has been stored."""
    session = request.session
    key = session.session_key
    return BrowserSession(key, session.get(HASH_SESSION_KEY, "")) if key else None


def active_membership(user: User, wanted: str | None) -> Membership | None:
    """Return the membership a session acts in: the chosen, else the personal, else the oldest."""
    mine: list[Membership] = list(
        Membership.objects.filter(user_id=user.pk)
        .select_related("organization")
        .order_by("-organization__personal", "created_at")
    )
    chosen = [membership for membership in mine if str(membership.organization_id) == wanted]
    return next(iter(chosen or mine), None)


def _check_csrf(request: HttpRequest) -> None:
    """Check CSRF as DRF's SessionAuthentication does: views are csrf_exempt, sessions are not."""
    check = CSRFCheck(lambda _: None)  # type: ignore[arg-type]  # never called
    check.process_request(request)
    if check.process_view(request, None, (), {}):  # type: ignore[arg-type]
        raise Forbidden(code="csrf_failed")


class PrincipalAuthentication(BaseAuthentication):
    """Calls `authenticate` for DRF: `request.auth` is the Principal.

    Views whose keys need another scope than `read` or `write` subclass it and say which.
    """

    scope: ClassVar[Scope | None] = None
    for_guests: ClassVar[bool] = False
    for_applications: ClassVar[bool] = False

    def authenticate(self, request: Request) -> tuple[User | None, Principal] | None:
        principal = authenticate(
            request._request,
            scope=self.scope,
            for_guests=self.for_guests,
            for_applications=self.for_applications,
        )
        return (principal.user, principal) if principal else None

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="amber"'


class GuestAuthentication(PrincipalAuthentication):
    """Authenticates the guests of a public assistant, and nobody else."""

    for_guests = True


class HasPrincipal(BasePermission):
    """Lets in whoever is authenticated.

    A key that is limited to one assistant is refused wherever the view does not name the method in
    `bound_keys_may`, so that no new view is open to it by oversight.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not isinstance(request.auth, Principal):
            return False
        if request.auth.is_bound_key and not _is_for_bound_keys(request, view):
            raise Forbidden(_NOT_FOR_BOUND_KEYS)
        return True


def _is_for_bound_keys(request: Request, view: "APIView") -> bool:
    method = "GET" if request.method == "HEAD" else request.method
    return method == "OPTIONS" or method in getattr(view, "bound_keys_may", ())


class InPerson(BasePermission):
    """Keeps keys out: they may not manage keys, members or organizations, nor their user."""

    message = "API keys may not do this. Sign in instead."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return principal_of(request).key is None


class InPersonOrReadOnly(InPerson):
    def has_permission(self, request: Request, view: "APIView") -> bool:
        return request.method in SAFE_METHODS or super().has_permission(request, view)


def principal_of(request: Request) -> Principal:
    """Return the principal of a request. Raises NotAuthenticated if there is none."""
    if not isinstance(request.auth, Principal):
        raise NotAuthenticated
    return request.auth


def admin_of(request: Request) -> Principal:
    """Return the principal of a request, an owner or admin. Raises Forbidden for others."""
    principal = principal_of(request)
    if not principal.is_admin:
        raise Forbidden
    return principal
