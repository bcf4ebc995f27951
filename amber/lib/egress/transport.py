"""Connect the guarded client to the addresses that were judged, and to no other.

`GuardedTransport` is a transport of httpx2. Each request's URL is checked, and where a connection
is made the name is resolved once, every address is judged, and the socket is opened to one of
those very addresses; Host, SNI and the certificate still go by the name. There is no second
look-up that an answer with a short life could change (DNS rebinding). No proxies, no environment.

For a client that must be httpx2's own (MCP):
`httpx2.AsyncClient(transport=GuardedTransport(policy), trust_env=False)`. It has no limits of size
or depth; everything else uses `amber.lib.egress.fetch`.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

import httpcore2
import httpx2

from amber.lib.egress.policy import CONNECT_SECONDS, EgressPolicy

_TRANSPORT_ERRORS: Final = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
)
_SOCKET_OPTIONS = Iterable[httpcore2.SOCKET_OPTION]


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Checks each request's URL and sends it. Raises UnsafeAddress, and httpx2's errors."""

    def __init__(self, policy: EgressPolicy) -> None:
        self._policy = policy
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=policy.ssl_context or _system_trust(),
            network_backend=GuardedBackend(policy),
            keepalive_expiry=5.0,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = self._policy.check_url(str(request.url))
        with _as_httpx2_errors():
            answer = await self._pool.handle_async_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(
                        scheme=url.raw_scheme,
                        host=url.raw_host,
                        port=url.port,
                        target=url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_GuardedBody(answer),
            extensions=answer.extensions,
            request=request,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _GuardedBody(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx2_errors():
            async for part in self._answer.aiter_stream():
                yield part

    async def aclose(self) -> None:
        await self._answer.aclose()


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens sockets to judged addresses. `host` arrives as the name in the URL."""

    def __init__(
        self, policy: EgressPolicy, inner: httpcore2.AsyncNetworkBackend | None = None
    ) -> None:
        self._policy = policy
        self._inner = inner or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (httpcore2's interface)
        local_address: str | None = None,
        socket_options: _SOCKET_OPTIONS | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Try each address in its share of the time, so that a silent one leaves some for the
        next."""
        ends_at = time.monotonic() + (CONNECT_SECONDS if timeout is None else timeout)
        try:
            async with asyncio.timeout(ends_at - time.monotonic()):
                addresses = await self._policy.addresses(host, port)
        except TimeoutError as exc:
            raise httpcore2.ConnectTimeout("The name server is silent.") from exc
        except OSError as exc:
            raise httpcore2.ConnectError("The name server failed.") from exc
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            share_seconds = max(ends_at - time.monotonic(), 0.0) / left
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout=share_seconds, socket_options=socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if left == 1:
                    raise
        raise httpcore2.ConnectError("No address.")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  (httpcore2's interface)
        socket_options: _SOCKET_OPTIONS | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise httpcore2.UnsupportedProtocol("No Unix sockets.")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


@contextmanager
def _as_httpx2_errors() -> Iterator[None]:
    """Raise httpcore2's errors as httpx2's, which have the same names."""
    try:
        yield
    except _TRANSPORT_ERRORS as exc:
        same: type[httpx2.TransportError] = getattr(
            httpx2, type(exc).__name__, httpx2.TransportError
        )
        raise same(str(exc)) from exc


@lru_cache(maxsize=1)
def _system_trust() -> ssl.SSLContext:
    """Read the certificate bundle once per process: it takes 20 ms."""
    return httpx2.create_ssl_context(trust_env=False)
