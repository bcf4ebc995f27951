"""Get one reply of a model, with deadlines and retries, and decide what a failure becomes.

Retries happen only while no text was shown, so that a viewer never reads one twice; reasoning that
was shown is taken back. What the
model's errors mean once text was shown is decided here too (docs/architecture.md, "Providers"):
the caller only tells failed (nothing shown) from incomplete (something shown). Nothing is yielded
inside a timeout: a deadline that fires while the consumer works would reach the wrong code.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from engine.provider.faults import fault
from engine.provider.model import (
    Model,
    ModelRequest,
    ProviderError,
    ReasoningChunk,
    ReplyEnd,
    ReplyPart,
    TextChunk,
)

MAX_RETRY_AFTER_SECONDS = 30.0
"""The longest pause between attempts, even if a provider asks for minutes."""

_INTERRUPTIONS = frozenset({"provider_unavailable", "provider_rate_limited"})
"""Codes that become `provider_lost` once text was shown; silence and nonsense keep theirs."""

OnRetry = Callable[[ProviderError, int], None]
"""Called for each failed attempt that is retried: the error, how many failed so far."""

OnAnswer = Callable[[], None]
"""Called once in each attempt, when the provider has begun to answer, whatever that is: what was sent is
paid for from then on."""


@dataclass(frozen=True, slots=True)
class BegunAgain:
    """The reasoning that was yielded so far counts no more: another attempt begins."""


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
    on_answer: OnAnswer | None = None,
) -> AsyncGenerator[ReplyPart | BegunAgain, None]:
    """Yield the parts of one reply, none of them empty; one provider call per attempt.

    Raises ProviderError: its code is `provider_lost` for every loss after text was shown.
    """
    failed = 0
    while True:
        is_shown = has_reasoned = False
        try:
            async with aclosing(_attempt(model, request, retry_policy, on_answer)) as parts:
                async for part in parts:
                    if isinstance(part, ReasoningChunk):
                        has_reasoned = True
                    else:
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
        if has_reasoned:
            yield BegunAgain()
        await asyncio.sleep(pause)


async def _attempt(
    model: Model, request: ModelRequest, retry_policy: RetryPolicy, on_answer: OnAnswer | None
) -> AsyncGenerator[ReplyPart, None]:
    """Yield the model's parts under the deadlines; even an empty part is a sign of life."""
    silence = _SilenceTimer(retry_policy.deadline)
    wait_seconds = retry_policy.first_token_seconds
    try:
        async with aclosing(model.stream(request)) as parts:
            while True:
                silence.allow(wait_seconds)
                try:
                    part = await anext(parts, None)
                except asyncio.CancelledError:
                    silence.raise_if_too_long()
                    raise
                silence.end()
                if part is None:
                    raise fault("provider_lost")
                wait_seconds = retry_policy.idle_seconds
                if on_answer is not None:
                    on_answer()
                    on_answer = None
                if not isinstance(part, TextChunk) or part.text:
                    yield part
                if isinstance(part, ReplyEnd):
                    return
    finally:
        silence.stop()


class _SilenceTimer:
    """Cancels the task that made it if a wait takes too long, and never outside of a wait.

    It is set once for many waits and looks, when it is due, whether the one under way is over: a
    timer of asyncio's own for each chunk of a stream would be a tenth of the loop's work.
    """

    def __init__(self, deadline: float | None) -> None:
        task = asyncio.current_task()
        assert task is not None, "replies are read in a task"
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._deadline = deadline
        self._due: float | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._cancelled_before = 0
        self._has_cancelled = False

    def allow(self, seconds: float) -> None:
        """Begin a wait of so long at most."""
        due = self._loop.time() + seconds
        if self._deadline is not None:
            due = min(due, self._deadline)
        self._due = due
        if self._handle is None or self._handle.when() > due:
            self.stop()
            self._handle = self._loop.call_at(due, self._look)

    def end(self) -> None:
        """End the wait."""
        self._due = None

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def raise_if_too_long(self) -> None:
        """Raise the fault if the task was cancelled from here, and by nobody else."""
        # As asyncio.timeout does: if somebody else has cancelled the task meanwhile, that wins.
        if self._has_cancelled and self._task.uncancel() <= self._cancelled_before:
            raise fault("provider_timeout") from None

    def _look(self) -> None:
        self._handle = None
        if self._due is None:
            return
        if self._loop.time() < self._due:
            self._handle = self._loop.call_at(self._due, self._look)
            return
        self._has_cancelled, self._cancelled_before = True, self._task.cancelling()
        self._task.cancel()


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
