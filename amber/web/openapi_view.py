"""Serve the OpenAPI document as YAML or JSON, made once per process and form: GET /api/schema/.

Making it takes a second of CPU, and anybody may ask for it. It depends on the code alone, so it is
made when it is first asked for, and never again. Clients that have it already get a 304.
"""

import hashlib
import threading
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

CACHE_CONTROL: Final = "public, max-age=300"
"""Clients cache it for five minutes: an upgrade may change it, and need not show at once."""


@dataclass(frozen=True, slots=True)
class _RenderedDocument:
    content: bytes
    etag: str


_documents: dict[str, _RenderedDocument] = {}
_lock: Final = threading.Lock()
"""Requests that come while it is made wait for it."""


class SchemaView(SpectacularAPIView):
    """Return the document in the form that `Accept` or `?format=` names."""

    @extend_schema(exclude=True)  # the document does not describe itself
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        renderer: BaseRenderer = request.accepted_renderer
        document = _document(renderer)
        charset = f"; charset={renderer.charset}" if renderer.charset else ""
        response = HttpResponse(
            document.content,
            content_type=f"{renderer.media_type}{charset}",
            headers={
                "ETag": document.etag,
                "Cache-Control": CACHE_CONTROL,
                "Content-Disposition": f'inline; filename="Amber.{renderer.format}"',
            },
        )
        answer = get_conditional_response(request._request, etag=document.etag, response=response)
        assert answer is not None
        return answer


def _document(renderer: BaseRenderer) -> _RenderedDocument:
    with _lock:
        if renderer.media_type not in _documents:
            content = renderer.render(_schema())
            assert isinstance(content, bytes)
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            _documents[renderer.media_type] = _RenderedDocument(content, etag)
        return _documents[renderer.media_type]


def _schema() -> Any:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    return generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
