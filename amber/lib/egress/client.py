"""Send one request and follow its redirects by httpx2; loaded when something is first fetched.

Redirects: at most three, each address judged as the first was. From https to http: refused, always.
POST becomes GET after 301 and 302, every method (but HEAD) after 303; a body goes only where it
was meant for, so a 307 or 308 with a body to another origin is refused. When the origin (scheme,
host or port) changes, only the headers in SAFE_HEADERS go along: whatever else the caller set may
be a credential.
"""

import asyncio
import io
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final
from urllib.parse import urljoin

import httpx2

from amber.lib.egress.answer import OWN_HEADERS, FetchError, FetchLimits, Response
from amber.lib.egress.policy import EgressPolicy
from amber.lib.egress.transport import GuardedTransport
from amber.lib.json_text import numbers

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_METHOD = re.compile(r"(?!(?:TRACE|CONNECT)$)[A-Z][A-Z-]{0,19}")
"""TRACE has a server repeat credentials; CONNECT is for proxies."""
SAFE_HEADERS: Final = frozenset({"accept", "accept-language", "accept-encoding", "user-agent"})


@dataclass(frozen=True)
class _Hop:
    method: str
    url: httpx2.URL
    headers: list[tuple[str, str]] = field(repr=False)
    content: bytes | None = field(repr=False)


async def fetch_guarded(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None,
    content: bytes | None,
    json: Any,
    policy: EgressPolicy,
    limits: FetchLimits,
    into: BinaryIO | None,
) -> Response:
    """Fetch as `amber.lib.egress.fetch` does. Raises UnsafeAddress, FetchError."""
    hop = _first_hop(method, policy.check_url(url), headers, content, json)
    try:
        async with asyncio.timeout(limits.total_seconds):
            transport = GuardedTransport(policy)
            try:
                return await _follow_redirects(transport, policy, hop, limits, into)
            finally:
                await transport.aclose()
    except (TimeoutError, httpx2.TimeoutException):
        raise FetchError("timeout") from None
    except (httpx2.DecodingError, httpx2.ProtocolError):
        raise FetchError("bad_answer") from None
    except httpx2.TransportError:
        raise FetchError("unreachable") from None


def _first_hop(
    method: str,
    url: httpx2.URL,
    headers: Mapping[str, str] | None,
    content: bytes | None,
    json: Any,
) -> _Hop:
    if not _METHOD.fullmatch(method):
        raise ValueError(f"No method of this client: {method!r}")
    given = [
        (name, value) for name, value in (headers or {}).items() if name.lower() not in OWN_HEADERS
    ]
    names = {name.lower() for name, _ in given}
    if json is not None:
        content = numbers.write(json)
        if "content-type" not in names:
            given.append(("Content-Type", "application/json"))
    if "user-agent" not in names:
        given.append(("User-Agent", "Amber"))
    if "accept" not in names:
        given.append(("Accept", "*/*"))
    given.append(("Accept-Encoding", "gzip, deflate"))
    return _Hop(method, url, given, content)


async def _follow_redirects(
    transport: GuardedTransport,
    policy: EgressPolicy,
    hop: _Hop,
    limits: FetchLimits,
    into: BinaryIO | None,
) -> Response:
    for _ in range(limits.max_redirects + 1):
        answer = await transport.handle_async_request(_request(hop, limits))
        try:
            location = answer.headers.get("location") if answer.status_code in REDIRECTS else None
            if location is None:
                kept = io.BytesIO()
                if hop.method != "HEAD":
                    await _read(answer, limits.max_bytes, into or kept)
                body = kept.getvalue()
                return Response(answer.status_code, answer.headers, body, str(hop.url))
        finally:
            await answer.aclose()
        hop = _next_hop(hop, answer.status_code, policy.check_url(_join_url(hop.url, location)))
    raise FetchError("bad_redirect")


def _request(hop: _Hop, limits: FetchLimits) -> httpx2.Request:
    # Other bytes than ASCII are legal in a value (RFC 9110, 5.5); httpx2 would refuse them.
    headers = [(name.encode(), value.encode()) for name, value in hop.headers]
    timeout = {"connect": limits.connect_seconds, "read": None, "write": None, "pool": None}
    return httpx2.Request(
        hop.method, hop.url, headers=headers, content=hop.content, extensions={"timeout": timeout}
    )


async def _read(answer: httpx2.Response, max_bytes: int, sink: BinaryIO) -> None:
    """Copy the body to `sink`. Raises FetchError at the first piece too many, as decompressed."""
    # 101: the connection would be the server's to speak on as it likes.
    if answer.status_code < 200:
        raise FetchError("bad_answer")
    declared = answer.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise FetchError("too_large")
    received_bytes = 0
    async with aclosing(answer.aiter_bytes()) as decoded:
        async for part in decoded:
            received_bytes += len(part)
            if received_bytes > max_bytes:
                raise FetchError("too_large")
            sink.write(part)


def _join_url(url: httpx2.URL, location: str) -> str:
    try:
        return urljoin(str(url), location)
    except ValueError:
        raise FetchError("bad_redirect") from None


def _next_hop(hop: _Hop, status: int, url: httpx2.URL) -> _Hop:
    """Return the request that the redirect asks for. Raises FetchError `bad_redirect`."""
    if hop.url.scheme == "https" and url.scheme == "http":
        raise FetchError("bad_redirect")
    method, content, headers = hop.method, hop.content, hop.headers
    after_post = status in (301, 302) and method == "POST"
    becomes_get = after_post or (status == 303 and method != "HEAD")
    if becomes_get:
        method, content = "GET", None
        headers = [pair for pair in headers if not pair[0].lower().startswith("content-")]
    if _origin(url) != _origin(hop.url):
        if content is not None:
            raise FetchError("bad_redirect")
        headers = [pair for pair in headers if pair[0].lower() in SAFE_HEADERS]
    return _Hop(method, url, headers, content)


def _origin(url: httpx2.URL) -> tuple[str, bytes, int]:
    return url.scheme, url.raw_host, url.port or (443 if url.scheme == "https" else 80)
