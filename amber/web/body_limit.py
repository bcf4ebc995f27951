"""Limit the size of bodies around the ASGI application, to the most that any address accepts.

Django writes a whole body to the disk before it asks who sends it: without a limit here, anybody
could fill the disk. Addresses with a lower limit refuse larger bodies themselves.
"""

import io
from typing import Any, Final

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest

from amber.lib.errors import TooLarge
from amber.lib.rest.api import error_response
from amber.web.request_log import Application, Receive, Scope, Send

FORM_BYTES: Final = 1_000_000
"""The most that a form may hold besides its file."""

MAX_DIGITS: Final = 20
"""The most digits of a length: Python refuses to read numbers of thousands of digits."""


class BodyTooLongError(Exception):
    """The body is larger than any address accepts."""


def limit_bodies(application: Application) -> Application:
    """Wrap the application: a larger body is answered with 413, and its rest is not read."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        left_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + FORM_BYTES

        async def receive_counting() -> Any:
            nonlocal left_bytes
            message = await receive()
            left_bytes -= len(message.get("body", b""))
            if left_bytes < 0:
                raise BodyTooLongError
            return message

        try:
            if _announced_bytes(scope) > left_bytes:
                raise BodyTooLongError
            await application(scope, receive_counting, send)
        except BodyTooLongError:
            await _refuse(scope, send)

    return answer


def _announced_bytes(scope: Scope) -> int:
    """Return the declared length; 0 without one, as for chunks, which are counted as they come."""
    said = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return int(said) if said.isdigit() and len(said) <= MAX_DIGITS else 0


async def _refuse(scope: Scope, send: Send) -> None:
    most = f"The body may have at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes."
    refusal = error_response(TooLarge(most), ASGIRequest(dict(scope), io.BytesIO()))
    headers = [*refusal.items(), ("Content-Length", str(len(refusal.content)))]
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": refusal.status_code, "headers": encoded})
    await send({"type": "http.response.body", "body": refusal.content})
