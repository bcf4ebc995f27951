"""Answer HTTP requests with the bytes of a file, so that no browser can be tricked with them.

The answer has Amber's own content type, `nosniff`, a sandbox without sources, and is a download:
only images that Amber encoded may be shown inside a page. Caches keep it for one person and ask
each time.

Streams without holding a database connection, so that slow readers cost none.
"""

import asyncio
from collections.abc import AsyncIterator

import structlog
from django.core.files.base import File as StoredFile
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header

from amber.lib.errors import Missing
from libraries.files.payload import PIECE_BYTES
from libraries.files.storage import open_bytes
from libraries.models import File

logger = structlog.get_logger(__name__)


def file_response(request: HttpRequest, file: File, *, inline: bool = False) -> HttpResponseBase:
    """Answer 200 with the bytes (without them for HEAD), 304 or 412.

    `inline` counts for images only.

    Call it in the request's own thread: it returns that thread's database connections.
    Raises Missing if the storage has lost the bytes, Unavailable if it cannot be reached.
    """
    headers = _headers(file, inline=inline)
    head = HttpResponse(headers=headers)
    short = get_conditional_response(request, etag=headers["ETag"], response=head) or head
    if short is not head or request.method == "HEAD":
        # A 304 renews the headers that a browser has stored.
        short["Content-Security-Policy"] = headers["Content-Security-Policy"]
        return short
    try:
        stored = open_bytes(file.path)
    except FileNotFoundError:
        logger.exception("file_lost", file_id=str(file.pk))
        raise Missing from None
    if isinstance(request, ASGIRequest):
        connections.close_all()
        answer = StreamingHttpResponse(_Pieces(stored))
    else:
        answer = FileResponse(stored)
    for name, value in headers.items():
        answer[name] = value
    return answer


class _Pieces:
    """Reads the bytes in threads, since the event loop must not wait for a disk.

    The response closes it.
    """

    def __init__(self, stored: StoredFile[bytes]) -> None:
        self._stored = stored

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # Each piece is one hop to a thread and back.
        while piece := await asyncio.to_thread(self._stored.read, PIECE_BYTES):
            yield piece

    def close(self) -> None:
        self._stored.close()


def _headers(file: File, *, inline: bool) -> dict[str, str]:
    attached = not (inline and file.is_image)
    return {
        "Content-Type": file.mime_type,
        "Content-Length": str(file.size),
        "Content-Disposition": content_disposition_header(attached, file.name) or "attachment",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "private, no-cache",
        "ETag": f'"{file.file_hash}"',
    }
