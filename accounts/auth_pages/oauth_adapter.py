"""Adapt allauth's authorization server: applications get the one scope `mcp`, for this server alone.

Anybody may register an application, as clients of MCP do by themselves; what counts is that a
person lets it in. Refuses addresses to return to that a browser would run or read from the disk.
"""

from typing import Any, Final
from urllib.parse import urlsplit

from allauth.idp.oidc.adapter import DefaultOIDCAdapter
from django.core.exceptions import ValidationError

from accounts.sign_in.applications import SCOPE, is_own_resource, root_of
from amber.lib.names import plain_name

MAX_REDIRECT_URIS: Final = 20
MAX_URI_CHARS: Final = 2_000
GRANT_TYPES: Final = ("authorization_code", "refresh_token")
_OWN_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NEVER: Final = frozenset(
    {"javascript", "data", "vbscript", "file", "blob", "about", "ftp", "ws", "wss", "filesystem"}
)


class OAuthAdapter(DefaultOIDCAdapter):
    scope_display = {SCOPE: "Search your libraries and ask your assistants"}

    def get_issuer(self) -> str:
        return root_of(self.request)

    def validate_resource_uris(self, *, uris: list[str], **_: Any) -> None:
        """Raise ValidationError for a token that would be for another server."""
        if not all(is_own_resource(each, self.request) for each in uris):
            raise ValidationError("This server does not issue tokens for that resource.")

    def validate_client_registration(
        self,
        *,
        client: Any,
        client_metadata: dict[str, Any],
        token: Any,
        bearer_token: Any,
        **_: Any,
    ) -> None:
        """Hold a new application to what applications may be. Raises ValidationError."""
        uris = client.get_redirect_uris()
        if len(uris) > MAX_REDIRECT_URIS or not all(map(is_fit_to_return_to, uris)):
            raise ValidationError(
                "redirect_uris must be https addresses, addresses of this machine, or of an app."
            )
        if "authorization_code" not in client.get_grant_types():
            raise ValidationError("Only the grant type authorization_code is supported.")
        client.set_grant_types(list(GRANT_TYPES))
        client.set_response_types(["code"])
        client.set_scopes([SCOPE])
        client.set_default_scopes([SCOPE])
        client.name = plain_name(client.name) or "An application without a name"


def is_fit_to_return_to(uri: str) -> bool:
    """Return whether a browser may be sent there with a code."""
    try:
        parts = urlsplit(uri)
        host = parts.hostname
    except ValueError:
        return False
    is_plain = uri.isascii() and uri.isprintable() and len(uri) <= MAX_URI_CHARS
    if not is_plain or parts.fragment or "\\" in uri or " " in uri or "*" in uri:
        return False
    match parts.scheme:
        case "https":
            return bool(host) and parts.username is None
        case "http":
            return host in _OWN_MACHINE and parts.username is None
        case scheme:
            return bool(scheme) and scheme not in _NEVER
