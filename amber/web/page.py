"""Serve the web page: one document for all of its addresses, under a strict policy.

The document is the same for everybody. What a person sees is fetched by the page over REST, so
nothing here looks at who asks.
"""

import json
from html import escape
from typing import Final

from csp.constants import NONE, SELF
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, re_path
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from accounts.auth_pages.adapter import proves_addresses
from amber.lib.rest import api
from amber.web import page_files
from amber.web.branding import colours_address, logo_address

PLACES: Final = (
    *("chats", "assistants", "libraries", "tools", "memories", "usage", "settings"),
    *("sign-in", "sign-up", "verify-email", "reset-password", "login-error", "invitation", "claim"),
)
"""How the page's own addresses begin; web/app/routes.js has what is there."""
FOR_PROGRAMS: Final = ("/api/", "/v1/", "/static/", "/_allauth/", "/.well-known/")
"""Where nobody looks for a page."""


def page_urls() -> list[URLPattern]:
    begins = "|".join(PLACES)
    return [
        path("", show_page, name="page"),
        re_path(rf"^(?:{begins})(?:/.*)?$", show_page, name="page-place"),
    ]


@gzip_page
@require_safe
def show_page(request: HttpRequest) -> HttpResponse:
    document, policy = _document(page_files.publish())
    response = HttpResponse(document, headers={"Cache-Control": "no-cache"})
    response._csp_replace = policy  # type: ignore[attr-defined]
    return response


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an address that nothing is at: people see the page, which says so, programs the error."""
    is_visited = request.method in ("GET", "HEAD") and "text/html" in request.headers.get(
        "Accept", ""
    )
    if not is_visited or request.path_info.startswith(FOR_PROGRAMS):
        return api.handler404(request, exception)
    response = show_page(request)
    response.status_code = 404
    return response


def _document(files: page_files.PublishedFiles) -> tuple[str, dict[str, list[str]]]:
    """Return the page and its policy."""
    config = {
        "version": settings.AMBER_VERSION,
        "name": settings.AMBER_NAME,
        "logo": logo_address() if settings.AMBER_LOGO else "",
        "language": settings.AMBER_LANGUAGE.partition("-")[0],
        "currency": settings.AMBER_CURRENCY,
        "sendsMail": proves_addresses(),
        "openSignup": settings.AMBER_OPEN_SIGNUP,
        "maxMessageChars": settings.AMBER_MAX_MESSAGE_CHARS,
        "maxUploadBytes": settings.AMBER_MAX_UPLOAD_BYTES,
    }
    styles = [
        at
        for name, at in files.addresses.items()
        if name.startswith("styles/") and at.endswith(".css")
    ] + list(filter(None, [colours_address()]))
    filled = {
        "%config%": escape(json.dumps(config)),
        "%import-map%": files.import_map,
        "%styles%": "\n".join(f'<link rel="stylesheet" href="{at}">' for at in styles),
        "%preloads%": "\n".join(f'<link rel="modulepreload" href="{at}">' for at in files.preloads),
        "%main%": files.addresses["app/main.js"],
        "%name%": escape(settings.AMBER_NAME),
        "%icon%": logo_address(),
        "%katex-css%": files.addresses["vendor/katex/katex.css"],
        "%theme%": files.addresses["app/theme-first.js"],
    }
    document = (settings.BASE_DIR / "web" / "index.html").read_text()
    for mark, text in filled.items():
        document = document.replace(mark, text)
    policy = {
        "default-src": [NONE],
        "script-src": [SELF, files.import_map_hash],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "media-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        # Signing in with an identity provider is a form whose answer leads there.
        "form-action": [SELF, "https:"],
    }
    return document, policy
