"""Decide which web pages' scripts may read the public API's answers: pages of a key's origins, or
all pages where guests are served.

A browser asks before it sends the key, so its question is answered for the origins of all live keys
of the installation; the request itself is held to its own key's origins, or its assistant's
(`accounts.sign_in.authentication`). Cookies are ignored at these addresses, and browsers are told
so (`public_api.cors_middleware`): any page may read only what anybody could fetch.
"""

from typing import Any, Final

from django.http import HttpRequest

from accounts.models import ApiKey
from amber.lib.database.tenant import across_tenants

PATHS: Final = ("/chat", "/v1/", "/mcp")
GUEST_PATHS: Final = ("/api/v1/public/", "/identity/o/api/")
"""For guests, and for applications that get themselves tokens: no cookie counts there."""
MAX_ORIGIN_CHARS: Final = 300


def allow_registered_origin(sender: Any, request: HttpRequest, **_: Any) -> bool:
    """Return whether a key has this origin; a receiver of django-cors-headers' signal.

    One query, for requests of web pages only.
    """
    origin = request.headers.get("Origin", "")
    if not request.path_info.startswith(PATHS) or not 0 < len(origin) <= MAX_ORIGIN_CHARS:
        return False
    with across_tenants():
        return ApiKey.objects.live().filter(origins__contains=[origin]).exists()


def allow_guests_page(sender: Any, request: HttpRequest, **_: Any) -> bool:
    """Allow pages with guests, for the same signal; a public assistant's own list is checked
    later."""
    return request.path_info.startswith(GUEST_PATHS)
