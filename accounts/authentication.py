"""The one authenticator: session cookie or `Authorization: Bearer <key>` becomes a Principal.

Each request reads key, owner and membership anew, so that a revoked key or a removed member is
out at once. A bad credential is 401, never a fall back to another carrier.
"""

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.http import HttpRequest
from django.middleware.csrf import CsrfViewMiddleware
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.models import ApiKey, Membership, User
from accounts.principal import Principal
from amber.lib.errors import Forbidden, NotAuthenticated
from amber.lib.secrets import is_well_formed, sha256_hex

if TYPE_CHECKING:
    from rest_framework.views import APIView

ACTIVE_ORGANIZATION = "organization_id"
"""Session key of the active organization; the personal one when unset or no longer joined."""

_LAST_USED_STEP = timedelta(minutes=1)
"""`last_used_at` is for people: a minute's precision saves a write per request."""


def authenticate(request: HttpRequest) -> Principal | None:
    """Who is asking; None when the request carries no credential. At most two queries.

    Raises NotAuthenticated for a credential that does not count, Forbidden for a missing CSRF
    token on a session's unsafe request.
    """
    header = request.headers.get("Authorization", "")
    if header:
        return _by_key(header)
    user = getattr(request, "user", None)
    if isinstance(user, User) or (user is not None and user.is_authenticated):
        principal = _by_session(request)
        _check_csrf(request)
        return principal
    return None


def _by_key(header: str) -> Principal:
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not is_well_formed(secret):
        raise NotAuthenticated(code="invalid_credential")
    key = (
        ApiKey.objects.live()
        .select_related("user", "organization")
        .filter(sha256=sha256_hex(secret), user__is_active=True)
        .first()
    )
    membership = key and Membership.objects.filter(
        organization_id=key.organization_id, user_id=key.user_id
    ).first()
    if key is None or membership is None:
        raise NotAuthenticated(code="invalid_credential")
    _touch(key)
    return Principal(
        organization_id=key.organization_id,
        user=key.user,
        role=membership.role,
        key=key,
        assistant_id=key.assistant_id,
    )


def _touch(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > _LAST_USED_STEP:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def _by_session(request: HttpRequest) -> Principal:
    user = request.user
    if not isinstance(user, User) and not user.is_active:
        raise NotAuthenticated(code="invalid_credential")
    membership = active_membership(user, request.session.get(ACTIVE_ORGANIZATION))  # type: ignore[arg-type]
    if membership is None:
        raise NotAuthenticated("Your account is in no organization.", code="invalid_credential")
    return Principal(
        organization_id=membership.organization_id,
        user=membership.user,
        role=membership.role,
    )


def active_membership(user: User, wanted: str | None) -> Membership | None:
    """The membership a session acts in: the chosen one, else the personal, else the oldest."""
    mine = list(
        Membership.objects.filter(user_id=user.pk, user__is_active=True)
        .select_related("organization", "user")
        .order_by("-organization__personal", "created_at")
    )
    chosen = [m for m in mine if wanted and m.organization_id == _uuid(wanted)]
    return (chosen or mine or [None])[0]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _check_csrf(request: HttpRequest) -> None:
    """As DRF's SessionAuthentication does it: views are csrf_exempt, sessions are not."""
    check = _CsrfCheck(lambda _: None)  # type: ignore[arg-type,return-value]
    check.process_request(request)
    reason = check.process_view(request, None, (), {})  # type: ignore[func-returns-value]
    if reason:
        raise Forbidden(code="csrf_failed")


class _CsrfCheck(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> str:  # type: ignore[override]
        return reason


class PrincipalAuthentication(BaseAuthentication):
    """DRF's seat for `authenticate`: `request.auth` is the Principal."""

    def authenticate(self, request: Request) -> tuple[User | None, Principal] | None:
        principal = authenticate(request._request)
        return (principal.user, principal) if principal else None

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="amber"'


class HasPrincipal(BasePermission):
    """Lets in whoever `authenticate` knew."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return isinstance(request.auth, Principal)


def principal_of(request: Request) -> Principal:
    """The principal of an authenticated request."""
    if not isinstance(request.auth, Principal):
        raise NotAuthenticated
    return request.auth
