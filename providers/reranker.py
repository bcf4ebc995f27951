"""Ask the operator's HTTP reranker, if there is one, for the order of what search found.

Libraries are always searched with it; earlier talk and memories of a turn only where the operator allows
the turn to wait for it (`AMBER_RERANK_TURN_SECONDS`): `order_for_turn`.

    AMBER_RERANK_URL      the whole address, as https://reranker.example/v1/rerank
    AMBER_RERANK_MODEL    named: Jina's and Cohere's form (vLLM, LiteLLM, Xinference too); empty:
                          text-embeddings-inference's, which serves one model
    AMBER_RERANK_API_KEY  sent as Bearer, if it is given

Forms: https://docs.cohere.com/reference/rerank, https://jina.ai/reranker/,
https://huggingface.github.io/text-embeddings-inference/. `rerank` raises rather than guess an order: the
caller keeps the one it has. What is relevant enough is decided before: scores of two rerankers
cannot be compared.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import structlog
from django.conf import settings

from amber.lib.database.connections import release_connections
from amber.lib.tracing import names
from amber.lib.tracing.spans import trace

Key = TypeVar("Key", bound=Hashable)

logger = structlog.get_logger(__name__)

TIMEOUT_SECONDS: Final = 3.0
"""A small cross-encoder on a CPU takes about two for forty chunks; questions do not wait longer."""

MAX_BYTES: Final = 1_000_000

SHOWN: Final = 40
"""Texts that are shown to it at once: what is not among the first of these is mostly not right."""


class RerankError(Exception):
    """The reranker gave no usable order. The text is for operators."""


def is_configured() -> bool:
    return bool(settings.AMBER_RERANK_URL)


def may_serve_turns() -> bool:
    """Whether turns wait for the reranker to put earlier talk and memories in order."""
    return is_configured() and settings.AMBER_RERANK_TURN_SECONDS > 0


def order_for_turn(question: str, candidates: Mapping[Key, str]) -> list[Key]:
    """Return the candidates best first: in the reranker's order, if turns may ask it and it answers in
    time; else as they were.

    Candidates behind the first SHOWN stay behind. At most one request of AMBER_RERANK_TURN_SECONDS, while
    no database connection is held.
    """
    keys = list(candidates)
    if not may_serve_turns() or len(keys) < 2:
        return keys
    seconds = settings.AMBER_RERANK_TURN_SECONDS
    release_connections()
    try:
        order = rerank(question, [*islice(candidates.values(), SHOWN)], timeout_seconds=seconds)
    except RerankError as error:
        logger.warning("reranker_failed", reason=str(error))
        return keys
    return [*(keys[place] for place, _ in order), *keys[SHOWN:]]


@trace(names.RERANK, kind="client")
def rerank(
    query: str, texts: Sequence[str], *, timeout_seconds: float = TIMEOUT_SECONDS
) -> list[tuple[int, float]]:
    """Return (place in `texts`, score), best first, every text once.

    One request. Raises RerankError.
    """
    from amber.lib.egress import FetchError, FetchLimits, fetch_sync  # 4 MB, for those who have one
    from amber.lib.egress.operator_hosts import policy_trusting
    from amber.lib.egress.policy import UnsafeAddress

    url = settings.AMBER_RERANK_URL
    key = settings.AMBER_RERANK_API_KEY
    try:
        answer = fetch_sync(
            "POST",
            url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            json=_body(query, texts),
            policy=policy_trusting(url),
            limits=FetchLimits(total_seconds=timeout_seconds, max_bytes=MAX_BYTES),
        )
        if not answer.is_success:
            raise RerankError(f"status {answer.status}")
        return _order(answer.json(), len(texts))
    except (FetchError, UnsafeAddress) as error:
        raise RerankError(error.message) from error


def _body(query: str, texts: Sequence[str]) -> dict[str, Any]:
    model = settings.AMBER_RERANK_MODEL
    if not model:
        return {"query": query, "texts": list(texts), "truncate": True}
    documents = list(texts)
    return {"model": model, "query": query, "documents": documents, "top_n": len(documents)}


def _order(answer: Any, count: int) -> list[tuple[int, float]]:
    """Read the order; texts that the service left out come last, as they were.

    Raises RerankError.
    """
    rows: Any = answer.get("results") if isinstance(answer, Mapping) else answer
    try:
        scores = {int(row["index"]): _score(row) for row in rows}
    except (TypeError, KeyError, ValueError):
        raise RerankError("an answer of an unknown form") from None
    if not scores or not all(
        0 <= place < count and math.isfinite(scores[place]) for place in scores
    ):
        raise RerankError("an answer about other texts")
    least = min(scores.values())
    return sorted(
        ((place, scores.get(place, least)) for place in range(count)),
        key=lambda pair: (-pair[1], pair[0] not in scores, pair[0]),
    )


def _score(row: Mapping[str, Any]) -> float:
    return float(row["relevance_score"] if "relevance_score" in row else row["score"])
