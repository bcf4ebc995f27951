"""Get one reply of a model, with deadlines and retries, and decide what a failure becomes.

Retries happen only while nothing was shown, so that a viewer never reads a text twice. What the
model's errors mean once text was shown is decided here too (docs/architecture.md, "Providers"):
the caller only tells failed (nothing shown) from incomplete (something shown). Nothing is yielded
inside a timeout: a deadline that fires while the consumer works would reach the wrong code.
The timers cost about 5 µs a chunk (uvloop).
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from engine.provider.faults import fault
from engine.provider.model import Model, ModelRequest, ProviderError, ReplyEnd, ReplyPart, TextChunk

MAX_RETRY_AFTER_SECONDS = 30.0
"""The longest pause between attempts, even if a provider asks for minutes."""

_INTERRUPTIONS = frozenset({"provider_unavailable", "provider_rate_limited"})
"""Codes that become `provider_lost` once text was shown; silence and nonsense keep theirs."""

OnRetry = Callable[[ProviderError, int], None]
"""Called for each failed attempt that is retried: the error, how many failed so far."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait for a model, and how often to try. `deadline` is a loop.time()."""

    first_token_seconds: float = 60
    idle_seconds: float = 60
    retries: int = 2
    deadline: float | None = None
    backoff_seconds: float = 0.5
    """Pause before the first retry, doubled for each further one, then jittered down to half."""


DEFAULT_RETRY_POLICY = RetryPolicy()


async def reply(
    model: Model,
    request: ModelRequest,
    *,
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
    on_retry: OnRetry | None = None,
) -> AsyncGenerator[ReplyPart, None]:
    """Yield the parts of one reply, none of them empty; one provider call per attempt.

    Raises ProviderError: its code is `provider_lost` for every loss after something was shown.
    """
    failed = 0
    while True:
        is_shown = False
        try:
            async with aclosing(_attempt(model, request, retry_policy)) as parts:
                async for part in parts:
                    is_shown = True
                    yield part
            return
        except ProviderError as error:
            failed += 1
            if is_shown and error.code in _INTERRUPTIONS:
                raise fault("provider_lost") from error
            if is_shown:
                raise
            pause = pause_seconds(error, failed, retry_policy)
            if pause is None:
                raise
            if on_retry is not None:
                on_retry(error, failed)
        await asyncio.sleep(pause)


async def _attempt(
    model: Model, request: ModelRequest, retry_policy: RetryPolicy
) -> AsyncGenerator[ReplyPart, None]:
    """Yield the model's parts under the deadlines; even an empty part is a sign of life."""
    loop = asyncio.get_running_loop()
    wait_seconds = retry_policy.first_token_seconds
    async with aclosing(model.stream(request)) as parts:
        while True:
            due = loop.time() + wait_seconds
            if retry_policy.deadline is not None:
                due = min(due, retry_policy.deadline)
            try:
                async with asyncio.timeout_at(due):
                    part = await anext(parts, None)
            except TimeoutError:
                raise fault("provider_timeout") from None
            if part is None:
                raise fault("provider_lost")
            wait_seconds = retry_policy.idle_seconds
            if not isinstance(part, TextChunk) or part.text:
                yield part
            if isinstance(part, ReplyEnd):
                return


def pause_seconds(error: ProviderError, failed: int, retry_policy: RetryPolicy) -> float | None:
    """Return the seconds until the next attempt after `failed` ones, or None for no more."""
    if not error.retryable or failed > retry_policy.retries:
        return None
    pause = retry_policy.backoff_seconds * 2.0 ** (failed - 1) * random.uniform(0.5, 1)
    if error.retry_after_seconds is not None:
        pause = max(pause, min(error.retry_after_seconds, MAX_RETRY_AFTER_SECONDS))
    if retry_policy.deadline is None:
        return pause
    return pause if asyncio.get_running_loop().time() + pause < retry_policy.deadline else None
