"""Serve the site of the docs at /docs/: the files that `amber.docs_site.build` made, and no others.

Each process looks at the site once: a site never changes under its name. Pages run only the inline
scripts that the build has listed. While there is no site yet, one page says so and loads itself anew.
"""

import hashlib
import json
import mimetypes
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from csp.constants import NONE, SELF
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.views.decorators.http import require_safe

from amber.docs_site.place import POLICY_FILE, site_to_serve

ALWAYS_ASKED: Final = "public, no-cache"
"""Browsers keep a page, and ask each time whether it is still this one: docs change with upgrades."""

KEPT: Final = "public, max-age=31536000, immutable"
"""Of files whose name holds a digest of their content."""

RETRY_SECONDS: Final = 3
_NAMED_BY_CONTENT: Final = re.compile(r"\.[0-9a-f]{8}\.min\.(js|css)$")


@dataclass(frozen=True, slots=True)
class Site:
    folder: Path
    files: frozenset[str]
    policy: dict[str, list[str]]

    def content(self, path: str, *, packed: bool) -> tuple[bytes, bool]:
        """Return the file's bytes, and whether they are compressed."""
        packed = packed and f"{path}.gz" in self.files
        return (self.folder / (f"{path}.gz" if packed else path)).read_bytes(), packed


@require_safe
def show_docs(request: HttpRequest, path: str = "") -> HttpResponseBase:
    folder = site_to_serve(Path(settings.AMBER_VAR_DIR))
    if folder is None:
        return _say_that_it_is_not_built(request)
    site = read_site(folder)
    name = f"{path}index.html" if path.endswith("/") or not path else path
    if name in site.files:
        return _file(request, site, name)
    if f"{path}/index.html" in site.files:
        return HttpResponsePermanentRedirect(f"{request.path}/")
    raise Http404


@cache
def read_site(folder: Path) -> Site:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != POLICY_FILE)
    policy: dict[str, list[Any]] = {
        "default-src": [NONE],
        "script-src": [SELF, *json.loads((folder / POLICY_FILE).read_text())["script-src"]],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "worker-src": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "form-action": [NONE],
    }
    return Site(folder, frozenset(path.relative_to(folder).as_posix() for path in found), policy)


def _file(request: HttpRequest, site: Site, name: str) -> HttpResponseBase:
    content, packed = site.content(
        name, packed="gzip" in request.headers.get("Accept-Encoding", "")
    )
    response = HttpResponse(content, content_type=_content_type(name))
    response.headers["Cache-Control"] = KEPT if _NAMED_BY_CONTENT.search(name) else ALWAYS_ASKED
    response.headers["ETag"] = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    patch_vary_headers(response, ["Accept-Encoding"])
    answer = get_conditional_response(request, etag=response.headers["ETag"], response=response)
    assert answer is not None
    # A 304 brings its policy along: the browser puts it in the place of the one that it has kept.
    answer._csp_replace = site.policy  # type: ignore[attr-defined]
    return answer


def _content_type(name: str) -> str:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    is_text = kind.startswith("text/") or kind.endswith(("javascript", "json"))
    return f"{kind}; charset=utf-8" if is_text else kind


def _say_that_it_is_not_built(request: HttpRequest) -> HttpResponse:
    headers = {"Retry-After": str(RETRY_SECONDS), "Cache-Control": "no-store"}
    context = {"retry_seconds": RETRY_SECONDS}
    response = render(request, "amber/docs_not_built.html", context, status=503)
    for name, value in headers.items():
        response.headers[name] = value
    return response
