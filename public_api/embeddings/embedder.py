"""Embed clients' texts: nothing is kept, costs are accounted, and the provider is called on the web
process's own loop.

    request = admit_request(request)       # in the request's thread; reserves what it may cost
    body = await embed_request(request)

The cache of `libraries.embedding.store` is not used: nothing that strangers send is kept. Vectors
shorter than the model's own are its first numbers, normalised again, as OpenAI's models do it.
https://platform.openai.com/docs/guides/embeddings
"""

import asyncio
import base64
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import orjson
from django.conf import settings
from django.db import transaction

from accounts.principal import Principal
from amber.lib.database.connections import make_async
from amber.lib.errors import AmberError, Invalid
from amber.lib.ids import new_id
from engine.provider.model import ProviderError, Usage
from engine.provider.reply import RetryPolicy
from engine.text import tokens
from providers.budgets import reservations
from providers.budgets.rules import Spending
from providers.budgets.scopes import BudgetSubject
from providers.models import EmbeddingModel
from providers.registry import engine_embedder
from providers.usage import ledger
from providers.usage.ledger import spending_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

MAX_TEXTS: Final = 2_048
MAX_TOTAL_TOKENS: Final = 300_000
"""OpenAI's own limits: https://platform.openai.com/docs/api-reference/embeddings/create."""


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """A request. `dimensions` None: the model's own. `as_base64`: of little-endian float32. `id`
    names its reservation, if it `is_budgeted`."""

    caller: Principal
    model: EmbeddingModel
    texts: Sequence[str]
    dimensions: int | None = None
    as_base64: bool = False
    is_budgeted: bool = False
    id: UUID = field(default_factory=new_id)

    @property
    def budget_subject(self) -> BudgetSubject:
        return BudgetSubject.of_caller(self.caller)


def check_tokens(texts: Sequence[str], model: EmbeddingModel) -> None:
    """Raise Invalid for too many tokens; counts only texts whose bytes alone do not fit."""
    total = 0
    for number, text in enumerate(texts):
        counted = tokens.at_most_tokens(text)
        if counted > model.max_input_tokens or total + counted > MAX_TOTAL_TOKENS:
            counted = tokens.count_text(text, model.encoding)
        total += counted
        _check("input", total, MAX_TOTAL_TOKENS)
        _check(f"input.{number}", counted, model.max_input_tokens)


def _check(place: str, counted: int, most: int) -> None:
    if counted > most:
        said = f"{counted:,} tokens are more than the {most:,} that are taken at once."
        raise Invalid(said, fields={place: [said]})


def admit_request(request: EmbeddingRequest) -> EmbeddingRequest:
    """Reserve what the request may cost, and return it. Raises RateLimited (budget_exceeded)."""

    def estimate_spending() -> Spending:
        return spending_of(request.model, _estimate(request))

    with transaction.atomic():
        is_budgeted = reservations.reserve(
            request.budget_subject, estimate_spending, holder_id=request.id
        )
    return replace(request, is_budgeted=is_budgeted)


async def embed_request(request: EmbeddingRequest) -> bytes:
    """Return OpenAI's answer as JSON. One provider call per batch. Raises AmberError."""
    used: list[Usage] = []
    began = time.monotonic()
    outcome = "cancelled"
    try:
        vectors = await _vectors(request, used)
        outcome = "ok"
    except ProviderError as error:
        outcome = error.code
        raise AmberError(error.message, code=error.code) from None
    finally:
        is_estimate = outcome == "ok" and not used
        usage = _estimate(request) if is_estimate else sum(used, Usage())
        await _settle(request, usage, began, outcome=outcome, estimated=is_estimate)
    return await asyncio.to_thread(_answer, request, vectors, usage)


async def _vectors(request: EmbeddingRequest, used: list[Usage]) -> "Vectors":
    retry_policy = RetryPolicy(
        first_token_seconds=settings.AMBER_FIRST_TOKEN_SECONDS,
        retries=settings.AMBER_PROVIDER_RETRIES,
    )
    embedder = engine_embedder(request.model, retry_policy=retry_policy, on_usage=used.append)
    if request.model.provider.is_offline:  # nothing but CPU: not on the loop
        return await asyncio.to_thread(lambda: asyncio.run(_of(embedder, request.texts)))
    return await embedder.embed(request.texts)


async def _of(embedder: Any, texts: Sequence[str]) -> "Vectors":
    vectors: Vectors = await embedder.embed(texts)
    return vectors


def _estimate(request: EmbeddingRequest) -> Usage:
    return Usage(prompt_tokens=sum(map(tokens.estimate_tokens, request.texts)))


@make_async
def _settle(request: EmbeddingRequest, usage: Usage, began: float, **fields: Any) -> None:
    """Account what was used, and release the reservation."""
    latency_ms = round((time.monotonic() - began) * 1_000)
    budget_subject = asdict(request.budget_subject)
    with transaction.atomic():
        if request.is_budgeted:
            reservations.release([request.id])
        ledger.record(
            request.model,
            usage,
            latency_ms=latency_ms,
            is_budgeted=request.is_budgeted,
            **budget_subject,
            **fields,
        )


def _answer(request: EmbeddingRequest, vectors: "Vectors", usage: Usage) -> bytes:
    shortened = _shorten_vectors(vectors, request.dimensions)
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector.astype("<f4").tobytes()).decode()
            if request.as_base64
            else vector,
        }
        for index, vector in enumerate(shortened)
    ]
    counted = {"prompt_tokens": usage.prompt_tokens, "total_tokens": usage.prompt_tokens}
    body = {"object": "list", "data": data, "model": request.model.alias, "usage": counted}
    return orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)


def _shorten_vectors(vectors: "Vectors", dimensions: int | None) -> "Vectors":
    """Cut vectors and normalise them again. One whose first numbers are all zero stays zero."""
    import numpy as np

    if dimensions is None or dimensions == vectors.shape[1]:
        return np.ascontiguousarray(vectors)
    cut = vectors[:, :dimensions]
    norms = np.linalg.norm(cut, axis=1, keepdims=True)
    return np.ascontiguousarray(cut / np.where(norms, norms, 1), dtype=np.float32)
