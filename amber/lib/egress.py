"""One way out: every request to an address that a tenant, a document or a model chose.

    response = await fetch("GET", url, policy=policy)       # or fetch_sync, from a plain thread

Where it may connect is `egress_policy`'s business, how it connects `egress_transport`'s. Here:
redirects by hand, time, size, depth. Nothing is kept between calls: no cookies, no connections.

Redirects: at most three, each address judged as the first was. From https to http: refused, always.
POST becomes GET after 301 and 302, every method (but HEAD) after 303; a body goes only where it
was meant for, so a 307 or 308 with a body to another origin is refused. When the origin (scheme,
host or port) changes, only the headers in SAFE_HEADERS go along: whatever else the caller set may
be a credential.

Refuses to say why a connection failed in more than the five words of `Reason`.
"""

import asyncio
import codecs
import io
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, BinaryIO, Final, Literal
from urllib.parse import urljoin

import httpx2
import orjson
from django.conf import settings

from amber.lib.egress_policy import EgressPolicy, UnsafeAddress
from amber.lib.egress_transport import CONNECT_SECONDS, GuardedTransport
from amber.lib.errors import Invalid
from amber.lib.json_depth import is_deeper

__all__ = [
    "EgressPolicy",
    "FetchError",
    "FetchLimits",
    "Response",
    "UnsafeAddress",
    "fetch",
    "fetch_sync",
    "installation_policy",
]

MAX_JSON_DEPTH: Final = 50
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SAFE_HEADERS: Final = frozenset({"accept", "accept-language", "accept-encoding", "user-agent"})
# They belong to the connection, or name the target anew: never the caller's to set.
OWN_HEADERS: Final = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "accept-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "proxy-authorization",
        "proxy-connection",
    }
)

_CHARSET = re.compile(r"charset=[\"']?([\w.:-]{1,40})", re.ASCII | re.IGNORECASE)
_SAFE_CODEC = re.compile(
    r"(utf-8|utf-16|utf-32|ascii|latin|iso8859|iso2022|cp\d|gb|big5|euc_|shift_jis|koi8|mac-)"
)

Reason = Literal["timeout", "unreachable", "too_large", "bad_redirect", "bad_answer"]
_MESSAGES: Final[dict[Reason, str]] = {
    "timeout": "The address did not answer in time.",
    "unreachable": "The address cannot be reached.",
    "too_large": "The answer is too large.",
    "bad_redirect": "The address redirects in a way that Amber does not follow.",
    "bad_answer": "The address did not send a usable answer.",
}


class FetchError(Invalid):
    """No answer that can be used. `reason` is all there is to know."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        super().__init__(_MESSAGES[reason])


@dataclass(frozen=True)
class FetchLimits:
    """`max_bytes` counts the body decoded (10 MB are a long book)."""

    connect_seconds: float = CONNECT_SECONDS
    total_seconds: float = 30.0
    max_bytes: int = 10_000_000
    max_redirects: int = 3


@dataclass(frozen=True)
class Response:
    """Any status: what a 404 means is the caller's to say. `url` is where the answer came from."""

    status: int
    headers: httpx2.Headers
    body: bytes
    url: str

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def mime_type(self) -> str:
        """In lower case, without parameters; empty if not given."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def text(self) -> str:
        """In the charset that was named, else UTF-8; what does not decode becomes U+FFFD."""
        charset = _known_charset(self.headers.get("content-type", ""))
        return self.body.decode(charset, errors="replace").removeprefix("\ufeff")

    def json(self) -> Any:
        """Raises FetchError `bad_answer` if it is not JSON or over MAX_JSON_DEPTH deep."""
        if is_deeper(self.body, MAX_JSON_DEPTH):
            raise FetchError("bad_answer")
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            raise FetchError("bad_answer") from None


@dataclass(frozen=True)
class _Hop:
    method: str
    url: httpx2.URL
    headers: list[tuple[str, str]] = field(repr=False)
    content: bytes | None = field(repr=False)


async def fetch(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    json: Any = None,
    policy: EgressPolicy | None = None,
    limits: FetchLimits = FetchLimits(),
    into: BinaryIO | None = None,
) -> Response:
    """One request and its redirects. `json` is sent as the body, if it is not None.

    `into` takes the answer's body as it comes, for bodies too large for memory; the response's
    is empty then. `policy` None is the installation's. Raises UnsafeAddress, FetchError (both
    Invalid).
    """
    policy = policy or installation_policy()
    hop = _first_hop(method, policy.checked(url), headers, content, json)
    try:
        async with asyncio.timeout(limits.total_seconds):
            transport = GuardedTransport(policy)
            try:
                return await _followed(transport, policy, hop, limits, into)
            finally:
                await transport.aclose()
    except (TimeoutError, httpx2.TimeoutException):
        raise FetchError("timeout") from None
    except (httpx2.DecodingError, httpx2.ProtocolError):
        raise FetchError("bad_answer") from None
    except httpx2.TransportError:
        raise FetchError("unreachable") from None


def fetch_sync(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    json: Any = None,
    policy: EgressPolicy | None = None,
    limits: FetchLimits = FetchLimits(),
    into: BinaryIO | None = None,
) -> Response:
    """As `fetch`, for threads without an event loop."""
    return asyncio.run(
        fetch(
            method,
            url,
            headers=headers,
            content=content,
            json=json,
            policy=policy,
            limits=limits,
            into=into,
        )
    )


def installation_policy() -> EgressPolicy:
    """What AMBER_TOOL_ALLOWED_HOSTS says. Raises ValueError if it is wrong."""
    return _policy_allowing(tuple(settings.AMBER_TOOL_ALLOWED_HOSTS))


@lru_cache(maxsize=8)
def _policy_allowing(hosts: tuple[str, ...]) -> EgressPolicy:
    return EgressPolicy.allowing(hosts)


def _first_hop(
    method: str,
    url: httpx2.URL,
    headers: Mapping[str, str] | None,
    content: bytes | None,
    json: Any,
) -> _Hop:
    if method not in METHODS:
        raise ValueError(f"No method of this client: {method!r}")
    given = [
        (name, value) for name, value in (headers or {}).items() if name.lower() not in OWN_HEADERS
    ]
    names = {name.lower() for name, _ in given}
    if json is not None:
        content = orjson.dumps(json)
        if "content-type" not in names:
            given.append(("Content-Type", "application/json"))
    if "user-agent" not in names:
        given.append(("User-Agent", "Amber"))
    if "accept" not in names:
        given.append(("Accept", "*/*"))
    given.append(("Accept-Encoding", "gzip, deflate"))
    return _Hop(method, url, given, content)


async def _followed(
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
        hop = _next_hop(hop, answer.status_code, policy.checked(_joined(hop.url, location)))
    raise FetchError("bad_redirect")


def _request(hop: _Hop, limits: FetchLimits) -> httpx2.Request:
    # Other bytes than ASCII are legal in a value (RFC 9110, 5.5); httpx2 would refuse them.
    headers = [(name.encode(), value.encode()) for name, value in hop.headers]
    timeout = {"connect": limits.connect_seconds, "read": None, "write": None, "pool": None}
    return httpx2.Request(
        hop.method, hop.url, headers=headers, content=hop.content, extensions={"timeout": timeout}
    )


async def _read(answer: httpx2.Response, max_bytes: int, sink: BinaryIO) -> None:
    """Stops at the first piece too many, counted after decompression. Raises FetchError."""
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


def _joined(url: httpx2.URL, location: str) -> str:
    try:
        return urljoin(str(url), location)
    except ValueError:
        raise FetchError("bad_redirect") from None


def _next_hop(hop: _Hop, status: int, url: httpx2.URL) -> _Hop:
    """Raises FetchError `bad_redirect`."""
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


def _known_charset(content_type: str) -> str:
    """Python's other codecs decompress, run in quadratic time, or are no charsets."""
    named = _CHARSET.search(content_type)
    try:
        codec = codecs.lookup(named[1]).name if named else "utf-8"
    except (LookupError, ValueError):
        return "utf-8"
    return codec if _SAFE_CODEC.match(codec) else "utf-8"
