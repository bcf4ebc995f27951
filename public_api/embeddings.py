"""Texts to vectors for clients: not kept, accounted, and spoken to a provider on the web's own loop.

The cache of `libraries.embedding_store` is not asked: nothing of what strangers send is to stay. Vectors
shorter than the model's own are its first numbers, normalised anew, as OpenAI's models do it.
https://platform.openai.com/docs/guides/embeddings
"""

import asyncio
import base64
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections

from accounts.principal import Principal
from amber.lib.errors import AmberError, Invalid
from engine import tokens
from engine.model import ProviderError, Usage
from engine.reply import Patience
from providers import ledger
from providers.models import EmbeddingModel
from providers.registry import engine_embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

MAX_TEXTS: Final = 2_048
MAX_TOTAL_TOKENS: Final = 300_000
"""OpenAI's own limits: https://platform.openai.com/docs/api-reference/embeddings/create."""

CHARS_PER_TOKEN: Final = 4
"""OpenAI's rule of thumb, where a provider does not count."""


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """`dimensions` None: the model's own. `as_base64`: of little-endian float32."""

    asker: Principal
    model: EmbeddingModel
    texts: Sequence[str]
    dimensions: int | None = None
    as_base64: bool = False


def check_tokens(texts: Sequence[str], model: EmbeddingModel) -> None:
    """Counts only where bytes alone do not show that a text is short. Raises Invalid."""
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


async def embedded(request: EmbeddingRequest) -> bytes:
    """OpenAI's answer, JSON. One provider call per batch. Raises AmberError."""
    used: list[Usage] = []
    began = time.monotonic()
    try:
        vectors = await _vectors(request, used)
    except ProviderError as error:
        await _account(request, sum(used, Usage()), began, outcome=error.code)
        raise AmberError(error.message, code=error.code) from None
    usage = sum(used, Usage()) if used else _estimate(request)
    await _account(request, usage, began, estimated=not used)
    return await asyncio.to_thread(_answer, request, vectors, usage)


async def _vectors(request: EmbeddingRequest, used: list[Usage]) -> "Vectors":
    patience = Patience(
        first_token_seconds=settings.AMBER_FIRST_TOKEN_SECONDS,
        retries=settings.AMBER_PROVIDER_RETRIES,
    )
    embedder = engine_embedder(request.model, patience=patience, on_usage=used.append)
    if request.model.provider.is_offline:  # nothing but CPU: not on the loop
        return await asyncio.to_thread(lambda: asyncio.run(_of(embedder, request.texts)))
    return await embedder.embed(request.texts)


async def _of(embedder: Any, texts: Sequence[str]) -> "Vectors":
    vectors: Vectors = await embedder.embed(texts)
    return vectors


def _estimate(request: EmbeddingRequest) -> Usage:
    return Usage(prompt_tokens=sum(map(len, request.texts)) // CHARS_PER_TOKEN)


@sync_to_async(thread_sensitive=False)
def _account(request: EmbeddingRequest, usage: Usage, began: float, **fields: Any) -> None:
    asker = request.asker
    try:
        ledger.record(
            request.model,
            usage,
            organization_id=asker.organization_id,
            user_id=asker.user_id,
            api_key_id=asker.key.pk if asker.key else None,
            guest_id=asker.guest_id,
            latency_ms=round((time.monotonic() - began) * 1_000),
            **fields,
        )
    finally:
        connections.close_all()


def _answer(request: EmbeddingRequest, vectors: "Vectors", usage: Usage) -> bytes:
    shortened = _shortened(vectors, request.dimensions)
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


def _shortened(vectors: "Vectors", dimensions: int | None) -> "Vectors":
    """A vector whose first numbers are all zero stays so."""
    import numpy as np

    if dimensions is None or dimensions == vectors.shape[1]:
        return np.ascontiguousarray(vectors)
    cut = vectors[:, :dimensions]
    norms = np.linalg.norm(cut, axis=1, keepdims=True)
    return np.ascontiguousarray(cut / np.where(norms, norms, 1), dtype=np.float32)
