"""Send requests to providers over HTTP, with httpx2 over aiohttp: for chat models, embedders and speech.

Except for the time to connect, deadlines and retries are made by `engine.provider.reply`. Faults become
ProviderError as docs/architecture.md ("Providers") says. The client takes 17 MB, so it is imported on first
use: importing this module is free.

Bodies are sent and received as bytes. The `openai` package (3.52, with the same transport, uvloop, CPU of one
core) takes 12 MB more, and:

    one chunk, 32 paced streams      43 µs here, 115 µs through its models
    one request of 2 / 50 / 1,000 messages   0.5 / 0.5 / 0.6 ms as bytes, 1.0 / 6.1 / 103 ms through its models
    one request as bytes             0.18 ms here, 0.35 ms through its `client.post`
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from engine.provider.event_lines import BYTE_ORDER_MARK, EventLines
from engine.provider.faults import fault, fault_of_status
from engine.provider.model import ProviderError

if TYPE_CHECKING:
    import httpx2

logger = structlog.get_logger(__name__)

CONNECT_SECONDS = 5.0
KEEPALIVE_SECONDS = 60.0
NO_HEADERS: Mapping[str, str | None] = {}

MAX_BODY_BYTES = 64_000_000
"""The longest answer, streamed or not. As one JSON text one with pictures has a few million; a stream
has some 300 for each token, and so may have 200,000 tokens."""
MAX_REFUSAL_BYTES = 1_000_000
MAX_REDIRECTS = 3


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider answers, and with which key."""

    base_url: str
    api_key: str = field(repr=False)
    connect_seconds: float = CONNECT_SECONDS


_clients: dict[asyncio.AbstractEventLoop, dict[Endpoint, "httpx2.AsyncClient"]] = {}
_closers: dict[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = {}


def preload() -> None:
    """Import the client now; a worker does so at its start, so that its first turn need not."""
    import httpx_aiohttp.httpx2  # noqa: F401


async def shared_client(endpoint: Endpoint) -> "httpx2.AsyncClient":
    """Return the client of this endpoint on the running loop; its users share the connections.

    It is closed when the loop shuts its generators down (`asyncio.run` does), or by
    `close_clients`. Raises ProviderError for a key that no header can carry.
    """
    import httpx2
    from httpx_aiohttp.httpx2 import Httpx2AiohttpClient

    if not is_sendable(endpoint.api_key):
        raise fault("provider_auth", said="The stored key has characters that no key has.")
    loop = asyncio.get_running_loop()
    if loop not in _closers:
        # Nothing else takes out a loop that is closed.
        for old in [known for known in list(_closers) if known.is_closed()]:
            _closers.pop(old, None)
            _clients.pop(old, None)
        _closers[loop] = _close_with_loop()
        await anext(_closers[loop])
    clients = _clients.setdefault(loop, {})
    client = clients.get(endpoint)
    if client is None:
        timeout = httpx2.Timeout(None, connect=endpoint.connect_seconds)
        # The caller bounds its turns: one that waited for a connection would look like a slow
        # provider.
        limits = httpx2.Limits(
            max_connections=0,  # no limit, for aiohttp
            keepalive_expiry=KEEPALIVE_SECONDS,
        )
        client = clients[endpoint] = Httpx2AiohttpClient(
            base_url=endpoint.base_url,
            headers={
                "Accept": "application/json",
                "Authorization": f"Bearer {endpoint.api_key or 'none'}",  # local servers want none
                "User-Agent": "Amber",
            },
            timeout=timeout,
            limits=limits,
        )
    return client


def is_sendable(api_key: str) -> bool:
    """Return whether a header can carry this key: no line ends, nothing but ASCII."""
    return api_key.isascii() and api_key.isprintable()


async def _close_with_loop() -> AsyncGenerator[None, None]:
    """Close the clients when the loop ends: a loop closes its suspended generators before."""
    try:
        yield
    finally:
        await close_clients()


async def close_clients() -> None:
    """Close the running loop's clients and their connections; later users get new ones."""
    for client in _clients.pop(asyncio.get_running_loop(), {}).values():
        await client.aclose()


async def send(
    client: "httpx2.AsyncClient",
    path: str,
    body: bytes,
    headers: Mapping[str, str | None] = NO_HEADERS,
) -> "httpx2.Response":
    """Return the provider's answer to this JSON, its status good, its body unread: the caller closes
    it. A header of None is not sent. Raises ProviderError.
    """
    headers = {"Content-Type": "application/json", **headers}
    return await _ask(client, "POST", path, headers, content=body)


async def fetch(
    client: "httpx2.AsyncClient", path: str, headers: Mapping[str, str | None] = NO_HEADERS
) -> "httpx2.Response":
    """Return what the provider has at this path, as `send` does."""
    return await _ask(client, "GET", path, headers)


async def send_form(
    client: "httpx2.AsyncClient",
    path: str,
    fields: Mapping[str, str],
    file: tuple[str, bytes, str],
) -> "httpx2.Response":
    """Return the answer to a form, as `send` does. `file` is (name, bytes, MIME type)."""
    return await _ask(client, "POST", path, NO_HEADERS, data=fields, files={"file": file})


async def _ask(
    client: "httpx2.AsyncClient",
    method: str,
    path: str,
    headers: Mapping[str, str | None],
    **given: Any,
) -> "httpx2.Response":
    said = {name: value for name, value in headers.items() if value is not None}
    request = client.build_request(method, path, headers=said, **given)
    for name in headers.keys() - said.keys():
        request.headers.pop(name, None)
    async with response_errors():
        response = await _follow_redirects(client, request)
        if response.is_success:
            return response
        async with aclosing(response):
            body = await read_body(response, MAX_REFUSAL_BYTES)
    if response.is_redirect:
        words = f"{response.status_code} It redirects to another place: is its address right?"
        raise fault("provider_rejected", said=words)
    raise fault_of_status(response.status_code, _refusal_of(body), response.headers)


async def _follow_redirects(
    client: "httpx2.AsyncClient", request: "httpx2.Request"
) -> "httpx2.Response":
    """Return the answer. Within the provider's host a redirect is followed; elsewhere would go what
    people wrote, and a key in a header that httpx2 does not know for one.
    """
    for left in range(MAX_REDIRECTS, -1, -1):
        try:
            response = await client.send(request, stream=True)
        except UnicodeError:  # the transport cannot read each reason of a status
            raise fault("provider_malformed", said="Its answer is not HTTP.") from None
        following = response.next_request
        if following is None or not left or not _is_same_host(request.url, following.url):
            break
        await response.aclose()
        request = following
    return response


def _is_same_host(url: "httpx2.URL", other: "httpx2.URL") -> bool:
    """Return whether both are one service; https may follow http on the usual ports."""
    is_upgrade = (url.scheme, url.port, other.scheme, other.port) == ("http", None, "https", None)
    same = (url.scheme, url.port) == (other.scheme, other.port)
    return url.host == other.host and (same or is_upgrade)


def _refusal_of(body: bytes) -> object:
    """Return what a refusal says: its JSON, of that the error alone; the text where it is none."""
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode(errors="replace").strip()
    return said.get("error", said) if isinstance(said, dict) else said


@contextmanager
def log_failures(model: str) -> Iterator[None]:
    """Tell operators what a provider said of its failure; people who ask are told less."""
    try:
        yield
    except ProviderError as error:
        logger.warning("provider_failed", model=model, code=error.code, said=error.said)
        raise


@asynccontextmanager
async def response_errors() -> AsyncIterator[None]:
    """Turn what fails while an answer is read into a ProviderError."""
    import aiohttp
    import httpx2

    try:
        yield
    except httpx2.HTTPError as error:
        raise fault("provider_unavailable") from error
    except aiohttp.ClientError as error:  # it holds the request's headers, and so the key
        said = f"Its answer is not HTTP: {getattr(error, 'message', type(error).__name__)}"
        raise fault("provider_malformed", said=said) from None


async def payloads(response: "httpx2.Response") -> AsyncGenerator[list[bytes], None]:
    """Yield the body's payloads as they come; one JSON text from servers that do not stream.

    Which of the two it is the body's beginning says: servers label either as the other.
    """
    async with aclosing(response.aiter_bytes()) as blocks:
        begun = b""
        async for block in blocks:
            begun += block
            if first := begun.removeprefix(BYTE_ORDER_MARK).lstrip()[:1]:
                break
        else:
            return
        if first in b"{[":
            yield [await _rest_of(blocks, begun, MAX_BODY_BYTES)]
            return
        if first == b"<":  # a page, mostly of a proxy, or where an address lacks its /v1
            raise fault("provider_malformed", said="It answered with a page of HTML or XML.")
        lines, read_bytes = EventLines(), len(begun)
        yield lines.feed(begun)
        async for block in blocks:
            read_bytes += len(block)
            if read_bytes > MAX_BODY_BYTES:
                raise fault("reply_too_long", said=f"It sent more than {MAX_BODY_BYTES} bytes.")
            yield lines.feed(block)
        yield lines.end()


async def read_body(response: "httpx2.Response", max_bytes: int | None = None) -> bytes:
    """Return the whole body, without a byte order mark. Raises ProviderError if it is longer."""
    async with aclosing(response.aiter_bytes()) as blocks:
        return await _rest_of(blocks, b"", max_bytes or MAX_BODY_BYTES)


async def _rest_of(blocks: AsyncIterator[bytes], begun: bytes, max_bytes: int) -> bytes:
    """Return a whole body, without a byte order mark. Raises ProviderError."""
    body = bytearray(begun)
    async for block in blocks:
        body += block
        if len(body) > max_bytes:
            raise fault("provider_malformed", said=f"It sent more than {max_bytes} bytes.")
    return bytes(body).removeprefix(BYTE_ORDER_MARK).strip()
