"""Which web pages' scripts may read the public API's answers: those of a key's origins.

A browser asks before it sends the key, so its question is answered for the origins of all live keys
of the installation; the request itself is held to its own key's origins (`accounts.authentication`).
The middleware allows cookies along with an origin; they count for nothing here, as only keys do.
"""

from typing import Any, Final

from django.http import HttpRequest

from accounts.models import ApiKey

PATHS: Final = ("/chat", "/v1/")
MAX_ORIGIN_CHARS: Final = 300


def allow_registered_origin(sender: Any, request: HttpRequest, **_: Any) -> bool:
    """For django-cors-headers' signal. One query, for requests of web pages only."""
    origin = request.headers.get("Origin", "")
    if not request.path_info.startswith(PATHS) or not 0 < len(origin) <= MAX_ORIGIN_CHARS:
        return False
    return ApiKey.objects.live().filter(origins__contains=[origin]).exists()
