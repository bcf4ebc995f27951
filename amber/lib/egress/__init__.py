"""Send every request to an address that a tenant, a document or a model chose.

    response = await fetch("GET", url, policy=policy)       # or fetch_sync, from a plain thread

Where it may connect is decided in `policy`, how it connects in `transport`; answers, limits and
errors are in `answer`, redirects in `client`. Nothing is kept between
calls: no cookies, no connections. The client (httpx2, 3 MB) is imported with the first call.

Refuses to say why a connection failed in more than the five words of `Reason`.
"""

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, BinaryIO

from django.conf import settings

from amber.lib.egress.answer import (
    MAX_JSON_DEPTH,
    OWN_HEADERS,
    USUAL_LIMITS,
    FetchError,
    FetchLimits,
    Reason,
    Response,
)
from amber.lib.egress.policy import EgressPolicy, UnsafeAddress

__all__ = [
    "MAX_JSON_DEPTH",
    "OWN_HEADERS",
    "EgressPolicy",
    "FetchError",
    "FetchLimits",
    "Reason",
    "Response",
    "UnsafeAddress",
    "fetch",
    "fetch_sync",
    "installation_policy",
]


async def fetch(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    json: Any = None,
    policy: EgressPolicy | None = None,
    limits: FetchLimits = USUAL_LIMITS,
    into: BinaryIO | None = None,
) -> Response:
    """Send one request and follow its redirects. `json` is sent as the body, if it is not None.

    `into` takes the answer's body as it comes, for bodies too large for memory; the response's
    is empty then. `policy` None is the installation's. Raises UnsafeAddress, FetchError (both
    Invalid).
    """
    from amber.lib.egress.client import fetch_guarded

    return await fetch_guarded(
        method,
        url,
        headers=headers,
        content=content,
        json=json,
        policy=policy or installation_policy(),
        limits=limits,
        into=into,
    )


def fetch_sync(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    json: Any = None,
    policy: EgressPolicy | None = None,
    limits: FetchLimits = USUAL_LIMITS,
    into: BinaryIO | None = None,
) -> Response:
    """Fetch as `fetch` does, in a thread without an event loop."""
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
    """Return the policy of AMBER_TOOL_ALLOWED_HOSTS. Raises ValueError for a wrong entry."""
    return _policy_allowing(tuple(settings.AMBER_TOOL_ALLOWED_HOSTS))


@lru_cache(maxsize=8)
def _policy_allowing(hosts: tuple[str, ...]) -> EgressPolicy:
    return EgressPolicy.allowing(hosts)
