"""Embed texts, each paid for once: a cache in front of the embedder, and its ledger.

    vectors = embed_texts(texts, model=model, organization_id=organization_id)

A text an organization had embedded before costs no provider call; organizations share nothing.
What is missing goes to the provider in batches, some at once, and these are kept before the next
are asked for: a caller that is killed or refused pays for the rest only. The built-in embedder is
not cached: it is faster than the look-up.

Its functions block, for threads of workers and of requests alike. The provider is called on the
process's event loop (`amber.lib.workers.thread_bridge`), so that connections are shared, and rows
are written by the caller's thread. Does not retry beyond what `engine.provider.embedding` does:
whoever calls knows whether to wait.
"""

import asyncio
import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from amber.lib.database.connections import release_connections
from amber.lib.ids import new_id
from amber.lib.workers.thread_bridge import RunInThread, run_on_loop
from engine.provider.embedding import Embedder, batches
from engine.provider.model import ProviderError, Usage
from engine.provider.reply import RetryPolicy
from libraries.embedding.halfvec import halfvec_text, vector_of
from providers.models import EmbeddingModel
from providers.registry import engine_embedder
from providers.usage import ledger

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Known = dict[str, NDArray[np.float32]]

QUERY_SECONDS: Final = 1.0
"""A question does not wait longer for its vector; words find much of what there is."""

CHARS_PER_TOKEN: Final = 4
"""OpenAI's rule of thumb, where a provider does not count."""


def embed_texts(
    texts: Sequence[str],
    *,
    model: EmbeddingModel,
    organization_id: UUID,
    user_id: UUID | None = None,
) -> "Vectors":
    """Return the vectors of the texts in their order: (n, dimensions) float32, L2-normalised.

    Costs one query for what is known, then provider calls, with two inserts after each batch.
    Inside a transaction of the caller these belong to it. Raises ProviderError, DecryptError.
    """
    if model.provider.is_offline:
        return _embed_offline(engine_embedder(model), texts)
    payer = _Payer(model, organization_id, user_id)
    keys = [_md5(text) for text in texts]
    known = _read_cached(payer, keys)
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if missing:
        retry_policy = RetryPolicy(
            first_token_seconds=settings.AMBER_FIRST_TOKEN_SECONDS,
            retries=settings.AMBER_PROVIDER_RETRIES,
        )
        known |= _buy(payer, missing, retry_policy)
    return _stack_vectors(known, keys, model.dimensions)


def embed_query(
    text: str,
    *,
    model: EmbeddingModel,
    organization_id: UUID,
    user_id: UUID | None = None,
    timeout_seconds: float = QUERY_SECONDS,
) -> "NDArray[np.float32]":
    """Return the vector of a question, which is not cached: (dimensions,) float32, L2-normalised.

    Costs at most one provider call, without a second try. Raises ProviderError, DecryptError.
    """
    if model.provider.is_offline:
        found: NDArray[np.float32] = _embed_offline(engine_embedder(model), [text])[0]
        return found
    payer = _Payer(model, organization_id, user_id)
    retry_policy = RetryPolicy(first_token_seconds=timeout_seconds, retries=0)
    bought = _buy(payer, {_md5(text): text}, retry_policy, is_kept=False)
    return bought[_md5(text)]


@dataclass(frozen=True, slots=True)
class _Payer:
    """Whose vectors these are, and whose account pays for them."""

    model: EmbeddingModel
    organization_id: UUID
    user_id: UUID | None


@dataclass(slots=True)
class _Call:
    """One batch on its way to the provider."""

    texts: dict[str, str]
    usage: Usage | None = None
    latency_ms: int = 0
    vectors: "Vectors | None" = None
    error: ProviderError | None = None

    def pairs(self) -> "Iterator[tuple[str, NDArray[np.float32]]]":
        return zip(self.texts, () if self.vectors is None else self.vectors, strict=False)


def _buy(
    payer: _Payer, missing: dict[str, str], retry_policy: RetryPolicy, *, is_kept: bool = True
) -> "Known":
    """Return the vectors of the texts by key, bought from the provider.

    What came is kept before the next calls. Raises the first ProviderError after that.
    """
    known: Known = {}
    for calls in _group_batches(missing):
        release_connections()
        _call_all(payer, calls, retry_policy)
        with transaction.atomic():
            for call in calls:
                _record_usage(payer, call)
                if is_kept and call.vectors is not None:
                    _store_vectors(payer, call)
        known |= {key: vector for call in calls for key, vector in call.pairs()}
        failed = next((call.error for call in calls if call.error is not None), None)
        if failed is not None:
            raise failed
    return known


def _group_batches(missing: dict[str, str]) -> Iterator[list[_Call]]:
    """Yield groups of as many batches as a provider is asked for at once."""
    keys = iter(missing)
    # `batches` keeps the order of the texts, so each takes its own key.
    calls = [_Call({next(keys): text for text in batch}) for batch in batches([*missing.values()])]
    most = settings.AMBER_EMBEDDING_CONCURRENCY
    for start in range(0, len(calls), most):
        yield calls[start : start + most]


def _call_all(payer: _Payer, calls: Sequence[_Call], retry_policy: RetryPolicy) -> None:
    """Make the calls concurrently and return when the last has ended."""

    async def gather(_: RunInThread) -> None:
        await asyncio.gather(*(_call(payer, call, retry_policy) for call in calls))

    run_on_loop(gather)


async def _call(payer: _Payer, call: _Call, retry_policy: RetryPolicy) -> None:
    """Make one call and fill in its outcome; a ProviderError is stored there and not raised."""

    def count(usage: Usage) -> None:
        call.usage = usage

    began = time.monotonic()
    embedder = engine_embedder(payer.model, retry_policy=retry_policy, on_usage=count)
    try:
        call.vectors = await embedder.embed(list(call.texts.values()))
    except ProviderError as error:
        call.error = error
    call.latency_ms = round((time.monotonic() - began) * 1_000)


def _record_usage(payer: _Payer, call: _Call) -> None:
    """Write the call's ledger row, one insert. A call that failed without usage counts as free."""
    is_estimated = call.usage is None and call.error is None
    estimate = sum(map(len, call.texts.values())) // CHARS_PER_TOKEN if is_estimated else 0
    ledger.record(
        payer.model,
        call.usage or Usage(prompt_tokens=estimate),
        organization_id=payer.organization_id,
        user_id=payer.user_id,
        estimated=is_estimated,
        latency_ms=call.latency_ms,
        outcome="ok" if call.error is None else call.error.code,
    )


_READ_SQL: Final = """
SELECT text_md5, halfvec_send(vector) FROM libraries_embedding
WHERE organization_id = %s AND embedding_model_id = %s AND text_md5 = ANY(%s)
"""

_KEEP_SQL: Final = """
INSERT INTO libraries_embedding
    (id, created_at, updated_at, organization_id, embedding_model_id, text_md5, vector)
SELECT id, now(), now(), %s, %s, text_md5, vector
FROM unnest(%s::uuid[], %s::text[], %s::halfvec[]) AS kept (id, text_md5, vector)
ON CONFLICT DO NOTHING
"""


_FORGET_SQL: Final = """
DELETE FROM libraries_embedding
WHERE organization_id = %s AND text_md5 = ANY(%s)
  AND embedding_model_id IN (SELECT id FROM providers_embeddingmodel)
"""  # naming the models lets the index serve it


def forget_texts(texts: Iterable[str], *, organization_id: UUID) -> None:
    """Delete the cached vectors of these texts, for deletions that must leave nothing behind."""
    keys = [_md5(text) for text in texts]
    with connection.cursor() as cursor:
        cursor.execute(_FORGET_SQL, [organization_id, keys])


def _store_vectors(payer: _Payer, call: _Call) -> None:
    """Cache the call's vectors, one insert. Of two that buy the same text at once, one is kept."""
    vectors = [halfvec_text(vector) for _, vector in call.pairs()]
    keys = list(call.texts)
    ids = [new_id() for _ in keys]
    with connection.cursor() as cursor:
        cursor.execute(_KEEP_SQL, [payer.organization_id, payer.model.pk, ids, keys, vectors])


def _read_cached(payer: _Payer, keys: Sequence[str]) -> "Known":
    """Read the cached vectors by key, one query."""
    with connection.cursor() as cursor:
        cursor.execute(_READ_SQL, [payer.organization_id, payer.model.pk, list(set(keys))])
        return {key: vector_of(sent) for key, sent in cursor}


def _stack_vectors(known: "Known", keys: Sequence[str], dimensions: int) -> "Vectors":
    import numpy as np

    if not keys:
        return np.zeros((0, dimensions), np.float32)
    return np.stack([known[key] for key in keys])


def _embed_offline(embedder: Embedder, texts: Sequence[str]) -> "Vectors":
    """Embed with the built-in embedder, which never waits: any loop will do."""
    return run_on_loop(lambda _: embedder.embed(texts))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
