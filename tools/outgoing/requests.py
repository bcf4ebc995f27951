"""Send requests to the service behind a tool, through the guarded client.

    answer = await send(request, context=context, idempotent=False)

A request is repeated only if that is safe. Faults become ToolError texts that say what happened in
words a model can act on and reveal nothing about the target. If `context.exchanges` is a list, each
try is written into it without its credentials.
"""

import asyncio
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from amber.lib.egress import (
    EgressPolicy,
    FetchError,
    FetchLimits,
    Response,
    UnsafeAddress,
    fetch,
)
from amber.lib.tracing import spans
from tools.outgoing.auth import CredentialError
from tools.protocol import Exchange, ToolContext, ToolError

MAX_TRIES: Final = 3
RETRIED_STATUS: Final = frozenset({429, 502, 503, 504})
RETRIED_REASONS: Final = frozenset({"timeout", "unreachable"})
PAUSE_SECONDS: Final = 0.3
"""Before the second try; doubled before the third, each with up to as much again at random."""

DEFAULT_LIMITS: Final = FetchLimits()
SHOWN_BODY_CHARS: Final = 20_000
SHOWN_HEADERS: Final = frozenset(
    {"accept", "content-type", "content-length", "idempotency-key", "user-agent", "date", "server"}
)
"""All that is shown of a request or an answer; any other header may be a credential."""


class ServiceError(ToolError):
    """The tool's service could not be reached, or it answered with an error.

    `detail` is for the tool's owner; the text is for the model.
    """

    def __init__(self, text: str, *, detail: str = "", status: int | None = None) -> None:
        self.detail = detail or text
        self.status = status
        super().__init__(text)


def refused_address() -> ServiceError:
    return ServiceError("The tool's address is not one that may be called.")


def unusable_key(error: CredentialError) -> ServiceError:
    text = "The tool's service cannot be reached: its key is not usable."
    return ServiceError(text, detail=str(error))


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A request to send. `secrets` are texts (keys, tokens) that must not be shown anywhere."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


async def send(
    request: ServiceRequest,
    *,
    context: ToolContext,
    idempotent: bool,
    limits: FetchLimits = DEFAULT_LIMITS,
    policy: EgressPolicy | None = None,
) -> Response:
    """Return the answer, whatever its status, after up to MAX_TRIES tries if `idempotent`.

    With `policy` None the installation's holds. The caller's deadline limits all tries together.
    Raises ServiceError if no answer came.
    """
    tries = MAX_TRIES if idempotent else 1
    for number in range(1, tries + 1):
        try:
            answer = await _try_once(request, context, limits, policy)
        except UnsafeAddress:
            raise refused_address() from None
        except FetchError as error:
            if number == tries or error.reason not in RETRIED_REASONS:
                raise ServiceError(f"The tool's service failed: {error.message}") from None
        else:
            if number == tries or answer.status not in RETRIED_STATUS:
                return answer
        await asyncio.sleep(PAUSE_SECONDS * 2 ** (number - 1) * (1 + random.random()))
    raise AssertionError("the last try returns or raises")


async def _try_once(
    request: ServiceRequest,
    context: ToolContext,
    limits: FetchLimits,
    policy: EgressPolicy | None,
) -> Response:
    started = time.monotonic()
    answer: Response | None = None
    fault = ""
    try:
        answer = await fetch(
            request.method,
            request.url,
            headers={**request.headers, **spans.headers_for("tools")},
            content=request.body,
            limits=limits,
            policy=policy,
        )
        return answer
    except (UnsafeAddress, FetchError) as error:
        fault = error.message
        raise
    finally:
        if context.exchanges is not None:
            latency_ms = round((time.monotonic() - started) * 1_000)
            context.exchanges.append(_exchange(request, answer, latency_ms, fault))


def _exchange(
    request: ServiceRequest, answer: Response | None, latency_ms: int, fault: str
) -> Exchange:
    return Exchange(
        method=request.method,
        url=redact_text(request.url, request.secrets),
        request_headers=redact_headers(request.headers),
        request_body=redact_text((request.body or b"").decode("utf-8", "replace"), request.secrets),
        status=answer.status if answer else None,
        response_headers=redact_headers(answer.headers) if answer else {},
        response_body=redact_text(answer.text(), request.secrets) if answer else "",
        latency_ms=latency_ms,
        fault=fault,
    )


def redact_text(text: str, secrets: Iterable[str]) -> str:
    """Mask the secrets in the text and cut it."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "•••")
    return text[:SHOWN_BODY_CHARS]


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in SHOWN_HEADERS}
