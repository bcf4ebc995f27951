"""Embed a turn's question while everything else is read for it, and keep a vector that comes late.

An embedder on a busy machine may take longer than a question should wait. So the turn waits for
EMBEDDING_SECONDS from the request on, and then goes on with words only. The request is not cancelled: a late
vector serves the turn's next request to the model, if there is one (`chats.running.runner`).

It is begun on a task's thread and runs on the worker's loop. It never touches the database.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import UUID

import structlog

from amber.lib.workers.thread_bridge import worker_loop
from chats.context.lookups import RecallRequest
from engine.provider.model import ProviderError, Usage
from engine.provider.reply import RetryPolicy
from providers import registry
from providers.models import EmbeddingModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

logger = structlog.get_logger(__name__)

EMBEDDING_SECONDS: Final = 1.0
"""How long a turn waits for its question's vector; then it goes on with words only."""

LATE_SECONDS: Final = 20.0
"""How long a late vector is waited for, to serve the turn's next request."""

_ONCE: Final = RetryPolicy(first_token_seconds=LATE_SECONDS, retries=0)
_LATE: Final = "provider_timeout"


@dataclass(frozen=True, slots=True)
class QuestionEmbedding:
    """The question's vectors by embedding model. `problem` says why one is missing.

    `pending` are the embedders that were asked.
    """

    vectors: "Mapping[UUID, Vector]" = field(default_factory=dict)
    usages: Sequence[tuple[EmbeddingModel, Usage]] = ()
    problem: str = ""
    pending: "PendingEmbedding | None" = None

    @property
    def late_ms(self) -> int | None:
        """By how many milliseconds a vector missed the first request; None if none did, or it is still on its way."""
        return self.pending.late_ms if self.pending else None


@dataclass(frozen=True, slots=True)
class _EmbedderAnswer:
    """What one model answered, after so many seconds."""

    vector: "Vector | None"
    usages: Sequence[tuple[EmbeddingModel, Usage]]
    problem: str
    seconds: float


class PendingEmbedding:
    """One question on its way to one or more embedders."""

    def __init__(self) -> None:
        self._question = ""
        self._asked: dict[UUID, Future[_EmbedderAnswer]] = {}
        self._begun_at = 0.0
        self._accounted: set[UUID] = set()

    @property
    def late_ms(self) -> int | None:
        """The milliseconds by which the slowest vector was late; None if all came in time, or not yet."""
        late = [
            answer.seconds - EMBEDDING_SECONDS
            for answer in self._answers().values()
            if answer.vector is not None and answer.seconds > EMBEDDING_SECONDS
        ]
        return round(max(late) * 1_000) if late else None

    @property
    def is_late(self) -> bool:
        """Whether an embedder has not answered yet."""
        return not all(answer.done() for answer in self._asked.values())

    def begin(self, question: str, models: Sequence[EmbeddingModel]) -> None:
        """Ask those of the models that were not asked this question yet. Does not wait.

        What was asked for another question is given up.
        """
        if question != self._question:
            self.give_up()
            self._asked, self._accounted, self._question = {}, set(), question
        for model in models:
            if model.pk not in self._asked:
                self._begun_at = time.monotonic()
                self._asked[model.pk] = asyncio.run_coroutine_threadsafe(
                    _embed(question, model), worker_loop()
                )

    async def wait(self, wanted: RecallRequest) -> QuestionEmbedding:
        """Return the vectors that `wanted` needs, as far as they come within EMBEDDING_SECONDS."""
        # Mostly nothing is left to ask: it was begun while the tail was read.
        self.begin(wanted.question, wanted.embedding_models)
        await self._wait_until(self._begun_at + EMBEDDING_SECONDS)
        found = self._collect()
        if found.problem:
            logger.warning("question_not_embedded", reason=found.problem)
        return found

    async def wait_for_late(self) -> QuestionEmbedding:
        """Return all vectors once the last embedder has answered, or LATE_SECONDS have passed."""
        await self._wait_until(self._begun_at + LATE_SECONDS)
        found = self._collect()
        logger.info("question_embedded_late", late_ms=found.late_ms, problem=found.problem)
        return found

    def give_up(self) -> None:
        """Cancel the requests that are still under way."""
        for answer in self._asked.values():
            answer.cancel()

    async def _wait_until(self, deadline: float) -> None:
        pending = [asyncio.wrap_future(each) for each in self._asked.values() if not each.done()]
        if pending:
            waiting = [asyncio.shield(each) for each in pending]
            await asyncio.wait(waiting, timeout=max(deadline - time.monotonic(), 0.0))

    def _answers(self) -> dict[UUID, _EmbedderAnswer]:
        """Return what has come by now. Raises what asking raised (DecryptError)."""
        done = {
            pk: each for pk, each in self._asked.items() if each.done() and not each.cancelled()
        }
        return {pk: each.result() for pk, each in done.items()}

    def _collect(self) -> QuestionEmbedding:
        """Return what has come by now; what it cost is only part of the first return."""
        answers = self._answers()
        problems = [answer.problem for answer in answers.values() if answer.problem]
        if len(answers) < len(self._asked):
            problems.append(_LATE)
        unaccounted = [each for pk, each in answers.items() if pk not in self._accounted]
        self._accounted |= set(answers)
        return QuestionEmbedding(
            {pk: each.vector for pk, each in answers.items() if each.vector is not None},
            [usage for each in unaccounted for usage in each.usages],
            problems[0] if problems else "",
            self,
        )


async def embed_question(wanted: RecallRequest) -> QuestionEmbedding:
    """Embed the question of a request by itself, within EMBEDDING_SECONDS; an embedder that fails is a
    `problem`, no error."""
    pending = PendingEmbedding()
    found = await pending.wait(wanted)
    pending.give_up()
    return found


async def _embed(question: str, model: EmbeddingModel) -> _EmbedderAnswer:
    used: list[Usage] = []
    vector, problem = None, ""
    began = time.monotonic()
    try:
        embedder = registry.engine_embedder(model, retry_policy=_ONCE, on_usage=used.append)
        vector = (await embedder.embed([question]))[0]
    except ProviderError as error:
        problem = error.code
    seconds = time.monotonic() - began
    return _EmbedderAnswer(vector, [(model, usage) for usage in used], problem, seconds)
