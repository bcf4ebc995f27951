"""Send and receive all that one MCP session may: a guarded transport that counts.

The SDK is given an HTTP client that sends through a `Line`, so every byte of a session passes here.
A line adds the credentials, counts bytes and requests over the whole session, notes the exchanges
for the tool's owner, and can be cut from outside, which closes its sockets at once.

A session of one call has no use for the stream of messages that a server sends unasked (GET), for
compressed answers (they would be counted before they unfold) or for long goodbyes: all are refused.
A line follows no redirects; the SDK follows those that keep to the origin.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing
from typing import Any, Final, TypeVar

import anyio
import httpx2
import orjson

from amber.lib.egress import EgressPolicy, FetchError, Reason, UnsafeAddress
from amber.lib.egress.transport import GuardedTransport
from amber.lib.tracing import spans
from tools.mcp.terms import LineOptions
from tools.outgoing.requests import SHOWN_BODY_CHARS, redact_headers, redact_text
from tools.protocol import Exchange

T = TypeVar("T")

MAX_REQUESTS: Final = 100
"""A discovery of 50 pages takes 53; a server that breaks off each time is not asked for ever."""

GOODBYE_SECONDS: Final = 2.0


class Line(httpx2.AsyncBaseTransport):
    """The line of one session, on one event loop.

    `fault` is the last thing that went wrong on the wire, `status` that of the last answer to a
    message, `has_called` whether a tool's call may have reached the server. `ended` is done when
    the session must not go on, whatever the SDK would like to try again.
    """

    def __init__(self, policy: EgressPolicy, options: LineOptions) -> None:
        self.fault: FetchError | UnsafeAddress | None = None
        self.status: int | None = None
        self.has_called = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.options = options
        self._inner = GuardedTransport(policy)
        self._left_bytes = options.limits.max_bytes
        self._left_brackets = options.limits.max_brackets
        self._left_commas = options.limits.max_commas
        self._left_lines = options.limits.max_lines
        self._left_requests = MAX_REQUESTS
        self._scopes: set[anyio.CancelScope] = set()
        self._is_cut = False

    def cut(self) -> None:
        """Fail all that is on its way and all that follows; `fault` stays."""
        self._is_cut = True
        for scope in tuple(self._scopes):
            scope.cancel()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET" and "last-event-id" not in request.headers:
            return httpx2.Response(405, request=request)
        if request.method == "DELETE":
            return await self._goodbye(request)
        await request.aread()  # a redirected one is not read yet
        message = _method_of(request)
        if message == "tools/call":
            self.has_called = True
        note = _Note(request, self.options)
        try:
            answer = await self._send_metered(request, is_call=message == "tools/call")
        except (FetchError, UnsafeAddress) as fault:
            note.write(None, b"", fault.message)
            raise
        self.status = answer.status_code
        answer.stream = _MeteredBody(self, answer, note)
        return answer

    async def _send_metered(self, request: httpx2.Request, *, is_call: bool) -> httpx2.Response:
        """Send a request and return the answer's head. Raises FetchError, UnsafeAddress."""
        self._left_requests -= 1
        if self._is_cut or self._left_requests < 0:
            raise self.end("bad_answer")
        outgoing = self._outgoing(request, is_call=is_call)
        answer = await self.watch(self._inner.handle_async_request(outgoing))
        answer.request = request
        encoding = answer.headers.get("content-encoding", "identity").strip().lower()
        declared = answer.headers.get("content-length", "")
        if encoding != "identity" or answer.status_code < 200:
            await answer.aclose()
            raise self.end("bad_answer")
        if declared.isdecimal() and int(declared) > self._left_bytes:
            await answer.aclose()
            raise self.end("too_large")
        return answer

    def _outgoing(self, request: httpx2.Request, *, is_call: bool) -> httpx2.Request:
        own_headers = self.options.call_headers if is_call else {}
        extra = {**spans.headers_for("tools"), **self.options.credentials, **own_headers}
        own = {name.lower().encode() for name in extra} | {b"accept-encoding"}
        headers = [pair for pair in request.headers.raw if pair[0].lower() not in own]
        headers.append((b"Accept-Encoding", b"identity"))
        # Other bytes than ASCII are legal in a value (RFC 9110, 5.5); httpx2 would refuse them.
        headers += [(name.encode(), value.encode()) for name, value in extra.items()]
        return httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            stream=request.stream,
            extensions=request.extensions,
        )

    async def _goodbye(self, request: httpx2.Request) -> httpx2.Response:
        """Tell the server that the session ends; nothing depends on its answer."""
        async with asyncio.timeout(GOODBYE_SECONDS):
            answer = await self._send_metered(request, is_call=False)
            await answer.aclose()
        return httpx2.Response(answer.status_code, request=request)

    async def watch(self, sending: Awaitable[T]) -> T:
        """Wait until it is done or the line is cut. Raises FetchError, UnsafeAddress."""
        try:
            with anyio.CancelScope() as scope:
                self._scopes.add(scope)
                try:
                    return await sending
                finally:
                    self._scopes.discard(scope)
        except UnsafeAddress as fault:
            self.fault = fault
            self._end()
            raise
        except httpx2.TimeoutException:
            raise self.record_fault("timeout") from None
        except (httpx2.ProtocolError, httpx2.DecodingError):
            raise self.record_fault("bad_answer") from None
        except httpx2.TransportError:
            raise self.record_fault("unreachable") from None
        raise self.record_fault("unreachable")  # the scope was cancelled: the line is cut

    def record_fault(self, reason: Reason) -> FetchError:
        """Return the fault to raise, and keep it unless the session has already ended."""
        fault = FetchError(reason)
        if not (self._is_cut or self.ended.done()):
            self.fault = fault
        return fault

    def end(self, reason: Reason) -> FetchError:
        """End the session and return the fault to raise."""
        fault = self.record_fault(reason)
        self._end()
        return fault

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def count(self, part: bytes, *, is_stream: bool) -> None:
        """Count a piece of an answer. Raises FetchError at the first one too many."""
        self._left_bytes -= len(part)
        self._left_brackets -= part.count(b"[") + part.count(b"{")
        self._left_commas -= part.count(b",")
        if is_stream:
            self._left_lines -= part.count(b"\n") + part.count(b"\r")
        left = self._left_bytes, self._left_brackets, self._left_commas, self._left_lines
        if min(left) < 0:
            raise self.end("too_large")


class _MeteredBody(httpx2.AsyncByteStream):
    def __init__(self, line: Line, answer: httpx2.Response, note: "_Note") -> None:
        self._line = line
        self._answer = answer
        self._inner: Any = answer.stream
        self._is_stream = "event-stream" in answer.headers.get("content-type", "").lower()
        self._note = note
        self._head = bytearray()
        self._fault = ""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = aiter(self._inner)
        async with aclosing(parts):
            while part := await self._next(parts):
                yield part

    async def _next(self, parts: Any) -> bytes:
        """Return the next piece, empty at the end. Raises FetchError, UnsafeAddress."""
        try:
            part: bytes = await self._line.watch(anext(parts, b""))
            self._line.count(part, is_stream=self._is_stream)
        except FetchError as fault:
            self._fault = fault.message
            raise
        if len(self._head) < SHOWN_BODY_CHARS:
            self._head += part[:SHOWN_BODY_CHARS]
        return part

    async def aclose(self) -> None:
        await self._inner.aclose()
        self._note.write(self._answer, bytes(self._head), self._fault)


class _Note:
    """Writes down what the tool's owner will see of one request."""

    def __init__(self, request: httpx2.Request, options: LineOptions) -> None:
        self._request = request
        self._options = options
        self._started = time.monotonic()
        self._is_written = False

    def write(self, answer: httpx2.Response | None, body: bytes, fault: str) -> None:
        exchanges, secrets = self._options.exchanges, self._options.secrets
        if exchanges is None or self._is_written:
            return
        self._is_written = True
        sent = self._request.content.decode("utf-8", "replace")
        exchanges.append(
            Exchange(
                method=self._request.method,
                url=redact_text(str(self._request.url), secrets),
                request_headers=redact_headers(self._request.headers),
                request_body=redact_text(sent, secrets),
                status=answer.status_code if answer else None,
                response_headers=redact_headers(answer.headers) if answer else {},
                response_body=redact_text(body.decode("utf-8", "replace"), secrets),
                latency_ms=round((time.monotonic() - self._started) * 1_000),
                fault=fault,
            )
        )


def _method_of(request: httpx2.Request) -> str:
    """Return the method of the JSON-RPC message that is sent; empty for other requests."""
    if request.method != "POST":
        return ""
    return str(orjson.loads(request.content).get("method", ""))
