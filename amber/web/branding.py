"""Give an installation its own looks: the logo, and a style sheet with the colours of its pages.

Pages load pictures and styles from their own origin alone, so a logo that lies elsewhere is fetched here, again
after an hour. While it cannot be fetched, Amber's own is shown.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from amber.lib.egress import FetchError, FetchLimits, UnsafeAddress, fetch_sync
from amber.lib.egress.operator_hosts import policy_trusting
from amber.lib.environment import MAX_LOGO_BYTES, picture_type

logger = structlog.get_logger(__name__)

_KEEP_SECONDS: Final = 3_600
_RETRY_SECONDS: Final = 60
_OWN_SHADES: Final = {"#f4b94a": "400", "#b4540a": "600", "#5a2a05": "900"}
"""The shades of the palette that stand for the colours of Amber's own logo."""


@dataclass(frozen=True)
class Logo:
    content: bytes
    mime_type: str


@dataclass
class _FetchedLogo:
    logo: Logo | None = None
    until: float = 0.0


_fetched = _FetchedLogo()
_lock = Lock()


def logo() -> Logo:
    """Return the logo; of an address once an hour, which then costs one request its time.

    Others get what is known meanwhile: anybody may ask, and a server that hangs must not stop all threads.
    """
    if not settings.AMBER_LOGO:
        return _own_logo()
    if not settings.AMBER_LOGO.startswith("https://"):
        return _logo_of(Path(settings.AMBER_LOGO).read_bytes())
    if time.monotonic() >= _fetched.until and _lock.acquire(blocking=False):
        try:
            _fetch_again()
        finally:
            _lock.release()
    return _fetched.logo or _own_logo()


def version() -> str:
    """Return what addresses of the logo end with, so that browsers ask again when the setting changed."""
    return sha256(f"{settings.AMBER_LOGO} {settings.AMBER_COLOR}".encode()).hexdigest()[:8]


def _fetch_again() -> None:
    """Fetch the logo; keep the one before for a while if that fails."""
    url = settings.AMBER_LOGO
    limits = FetchLimits(connect_seconds=3, total_seconds=5, max_bytes=MAX_LOGO_BYTES)
    try:
        answer = fetch_sync("GET", url, policy=policy_trusting(url), limits=limits)
        _fetched.logo = _logo_of(answer.body if answer.is_success else b"")
        _fetched.until = time.monotonic() + _KEEP_SECONDS
    except (FetchError, UnsafeAddress, ValueError) as fault:
        logger.warning("logo_not_fetched", url=url, reason=str(fault))
        _fetched.until = time.monotonic() + _RETRY_SECONDS


def _logo_of(content: bytes) -> Logo:
    """Raises ValueError for what is no picture."""
    return Logo(content, picture_type(content))


@cache
def _own_logo() -> Logo:
    text = (settings.BASE_DIR / "web" / "styles" / "icon.svg").read_text()
    if settings.AMBER_COLOR:
        for colour, shade in _OWN_SHADES.items():
            text = text.replace(colour, settings.AMBER_PALETTE[shade])
    return Logo(text.encode(), "image/svg+xml")


_CACHED: Final = {"Cache-Control": "public, max-age=3600"}
_LIGHT: Final = {
    "accent": "600",
    "accent-strong": "700",
    "accent-ground": "100",
    "resin-light": "400",
    "resin-dark": "600",
}
_DARK: Final = {"accent": "400", "accent-strong": "300", "accent-ground": "950", "on-accent": "950"}
"""Shades of the palette by the names that style sheets have for what they are used for."""


def branding_urls() -> list[URLPattern]:
    return [
        path("branding/logo", show_logo, name="logo"),
        path("branding/colours.css", show_colours, name="colours"),
        path("favicon.ico", show_logo, name="favicon"),
    ]


def platform_name(_: object = None) -> str:
    return str(settings.AMBER_NAME)


def logo_address(_: object = None) -> str:
    return f"/branding/logo?v={version()}"


def colours_address() -> str:
    """Return the address of the style sheet; empty where pages have Amber's own colours."""
    return f"/branding/colours.css?v={version()}" if settings.AMBER_COLOR else ""


def branding(_: HttpRequest) -> dict[str, Any]:
    """Give all templates the name, the logo and the colours: a context processor."""
    return {
        "platform_name": settings.AMBER_NAME,
        "platform_logo": logo_address(),
        "platform_colours": colours_address(),
    }


@require_safe
def show_logo(request: HttpRequest) -> HttpResponse:
    shown = logo()
    response = HttpResponse(shown.content, content_type=shown.mime_type, headers=_CACHED)
    # Whoever opens an SVG by its address shall not run what is in it.
    response._csp_replace = {  # type: ignore[attr-defined]
        "default-src": ["'none'"],
        "style-src": ["'unsafe-inline'"],
        "sandbox": [],
    }
    return response


@require_safe
def show_colours(request: HttpRequest) -> HttpResponse:
    light, dark = _rules(_LIGHT), _rules(_DARK)
    text = (
        f":root {{ {light} }}\n"
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}\n'
        f':root[data-theme="dark"] {{ {dark} }}\n'
    )
    return HttpResponse(text, content_type="text/css; charset=utf-8", headers=_CACHED)


def _rules(shades: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {settings.AMBER_PALETTE[at]};" for name, at in shades.items())
