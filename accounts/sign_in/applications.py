"""Let applications act for people by OAuth: each stands behind an API key that nobody knows.

A person lets an application in on a page (`accounts.auth_pages.oauth_pages`), in the organization
that is active there. That makes a key with the scope `mcp`; the application's tokens act as this
key. So it is listed, budgeted, limited and revoked as any key, and ends with the membership. Tokens
are allauth's rows, which hold hashes.
"""

from datetime import timedelta
from typing import Final

from allauth.idp.oidc.models import Client, Token
from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import ApiKey, Scope, User

SCOPE: Final = Scope.MCP.value
RESOURCE_PATH: Final = "/mcp"
UNUSED_DAYS: Final = 7
"""How long an application that nobody let in is remembered."""


def root_of(request: HttpRequest) -> str:
    """Return the address of this installation, without a slash at its end."""
    return settings.AMBER_PUBLIC_URL or f"{request.scheme}://{request.get_host()}"


def key_hash_of_token(token: str, request: HttpRequest) -> str:
    """Return the hash of the key that an access token acts as; empty for a token that is not valid.

    Two queries.
    """
    found: Token | None = (
        Token.objects.select_related("user").lookup(Token.Type.ACCESS_TOKEN, token)
        if token
        else None
    )
    if found is None or found.user is None or SCOPE not in found.get_scopes():
        return ""
    resources = found.get_resources()
    if resources and not any(is_own_resource(each, request) for each in resources):
        return ""  # it was meant for another server
    key = key_of_application(found.user, found.client_id).first()
    return key.sha256 if key else ""


def key_of_application(user: User, client_id: str) -> QuerySet[ApiKey]:
    """Return the live keys that the application stands behind: one, or none."""
    return ApiKey.objects.live().filter(user=user, oauth_client=client_id).order_by("-created_at")


def is_own_resource(resource: str, request: HttpRequest) -> bool:
    """Return whether a token for this resource (RFC 8707) is one for this server."""
    root = root_of(request)
    return resource.rstrip("/") in (root, f"{root}{RESOURCE_PATH}")


def end_tokens(user_id: object, client_id: str) -> None:
    """Delete all tokens by which the application acts for the person."""
    Token.objects.filter(user_id=user_id, client_id=client_id).delete()


def forget_unused() -> None:
    """Delete tokens that ran out, and applications that nobody let in. A periodic job."""
    Token.objects.expired().delete()
    least = timezone.now() - timedelta(days=UNUSED_DAYS)
    in_use = ApiKey.objects.live().exclude(oauth_client="").values("oauth_client")
    Client.objects.filter(created_at__lt=least, owner=None, data__dcr=True).exclude(
        pk__in=in_use
    ).delete()
