"""Serve the logo and the style sheet with the installation's colours, from the origin of the pages."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from amber.branding.logo import logo, version

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
