"""Let an ASGI application answer a request that Django has authenticated.

    DeferredResponse(partial(answer_by, application, request))

The application runs in a task of its own. If the client goes away, or the answer is given up, the
task is cancelled and waited for, so that what it began is ended.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

Application = Callable[[Any, Any, Any], Awaitable[None]]

EVENT_STREAM: Final = "text/event-stream"
_NOT_PASSED_ON: Final = frozenset({"connection", "content-length", "transfer-encoding"})


async def answer_by(application: Application, scope: Any, body: bytes) -> HttpResponseBase:
    """Return the application's answer: whole, or a stream of events as they come."""
    run = _ApplicationRun(application, scope, body)
    try:
        start = await run.next_message()
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]
        }
        response: HttpResponseBase
        if headers.get("content-type", "").startswith(EVENT_STREAM):
            response = StreamingHttpResponse(_stream(run), status=start["status"])
            response["X-Accel-Buffering"] = "no"
        else:
            async with aclosing(_stream(run)) as pieces:
                whole = b"".join([piece async for piece in pieces])
            response = HttpResponse(whole, status=start["status"])
            if not whole:
                # Django has given it one, but the answer to a notification has no body.
                del response["Content-Type"]
    except BaseException:
        await run.end()
        raise
    for name, value in headers.items():
        if name.lower() not in _NOT_PASSED_ON:
            response[name] = value
    return response


async def _stream(run: "_ApplicationRun") -> AsyncGenerator[bytes, None]:
    try:
        while True:
            message = await run.next_message()
            if message["body"]:
                yield message["body"]
            if not message.get("more_body"):
                return
    finally:
        await run.end()


class _ApplicationRun:
    """One run of an application. Its messages are taken one by one: it waits for whoever reads."""

    def __init__(self, application: Application, scope: Any, body: bytes) -> None:
        self._body: bytes | None = body
        self._is_gone = asyncio.Event()
        self._messages: asyncio.Queue[Any] = asyncio.Queue(maxsize=1)
        self._task = asyncio.ensure_future(application(scope, self._receive, self._send))

    async def next_message(self) -> Any:
        """Return the next message. Raises what the application raises."""
        taking = asyncio.ensure_future(self._messages.get())
        try:
            await asyncio.wait({taking, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if taking.done():
                return taking.result()
            # The application ended with its last message, before `taking` ran again.
            if not self._messages.empty():
                return self._messages.get_nowait()
            await self._task
            return {"body": b""}
        finally:
            taking.cancel()

    async def end(self) -> None:
        """Let the application know that the client is gone, and wait until it has ended."""
        self._is_gone.set()
        while not self._messages.empty():
            self._messages.get_nowait()  # lets go of a message that it waits to send
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _receive(self) -> Any:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._is_gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if not self._is_gone.is_set():
            await self._messages.put(message)


def scope_of(request: HttpRequest) -> Any:
    """Return an ASGI scope of the request, with what an application of HTTP looks at."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path_info,
        "raw_path": request.path_info.encode(),
        "root_path": "",
        "query_string": request.META.get("QUERY_STRING", "").encode(),
        "headers": [
            (name.lower().encode(), value.encode("latin-1", "replace"))
            for name, value in request.headers.items()
        ],
    }
