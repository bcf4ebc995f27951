"""Answer HTTP requests with the bytes of a file, so that no browser can be tricked with them.

The answer has Amber's own content type, `nosniff`, a sandbox without sources, and is a download:
only images that Amber encoded may be shown inside a page. Caches keep it for one person and ask
each time.
"""

import structlog
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header

from amber.lib.errors import Missing
from libraries.files.storage import open_bytes
from libraries.models import File

logger = structlog.get_logger(__name__)


def file_response(request: HttpRequest, file: File, *, inline: bool = False) -> HttpResponseBase:
    """Answer 200 with the bytes (without them for HEAD), 304 or 412.

    `inline` only applies to images. Raises Missing if the storage has lost the bytes, and Unavailable if it
    cannot be reached.
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
    answer = FileResponse(stored)
    for name, value in headers.items():
        answer[name] = value
    return answer


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
