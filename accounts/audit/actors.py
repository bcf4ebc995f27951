"""Find out who sends a request and from where, for the audit log."""

from uuid import UUID

from allauth.account.adapter import get_adapter
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.http import HttpRequest

from accounts.models import User
from accounts.principal import Actor, ActorKind


def client_address(request: HttpRequest) -> str:
    """Return the client's address, behind AMBER_TRUSTED_PROXIES proxies; empty if nobody tells it.

    An act is not refused because its log would lack the address.
    """
    try:
        address: str = get_adapter(request).get_client_ip(request)
    except (ImproperlyConfigured, PermissionDenied):
        return ""
    return address


def operator_of(request: HttpRequest) -> Actor:
    """Return the operator who uses the admin."""
    user_id: UUID | None = request.user.pk if isinstance(request.user, User) else None
    return Actor(ActorKind.OPERATOR, user_id, address=client_address(request))
