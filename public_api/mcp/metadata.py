"""Tell applications where to get a token for the MCP server (RFC 9728)."""

from django.http import HttpRequest, JsonResponse

from accounts.auth_pages.oauth_pages import public_json
from accounts.sign_in.applications import RESOURCE_PATH, SCOPE, root_of

ADDRESS = f"/.well-known/oauth-protected-resource{RESOURCE_PATH}"


def describe_resource(request: HttpRequest) -> JsonResponse:
    root = root_of(request)
    return public_json(
        {
            "resource": f"{root}{RESOURCE_PATH}",
            "authorization_servers": [root],
            "scopes_supported": [SCOPE],
            "bearer_methods_supported": ["header"],
            "resource_name": "Amber",
        }
    )


def challenge(request: HttpRequest, *, is_invalid: bool) -> str:
    """Return what a 401 says in `WWW-Authenticate`."""
    fault = ', error="invalid_token"' if is_invalid else ""
    place = f'resource_metadata="{root_of(request)}{ADDRESS}", scope="{SCOPE}"'
    return f'Bearer realm="amber"{fault}, {place}'
