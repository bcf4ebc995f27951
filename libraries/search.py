"""Search in libraries, by words and by meaning at once.

    found = search(libraries, "How do I bleed the pump?", k=5)
    found.passages[0].content

Words (`word_arm`) and vectors (`vector_arm`, one arm for each embedding model in use) are asked,
their rankings are fused by how far each can be trusted for this question (`ranking`), an operator's
reranker may have the last word (`rerank`), and neighbours become passages (`passages`).

The caller brings libraries it may see, with their `embedding_model` and its provider selected;
nothing outside of them is found. Blocking; refuses to fail because a provider or the reranker does:
what was left out is in `notes`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

import structlog

from amber.lib.secrets import UnsealError
from engine.model import ProviderError
from libraries import rerank
from libraries.embedding_store import embed_query
from libraries.models import Library, VectorSurvey
from libraries.passages import Hit, Passage, hits_of, passages_of
from libraries.ranking import FIRST_HITS, Ranked, TextArm, VectorArm, fuse
from libraries.scope import Filters, Scope, scopes_of
from libraries.survey import lift_of
from libraries.vector_arm import Asked, find_by_vector
from libraries.word_arm import find_by_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    QueryVectors = Mapping[UUID, NDArray[np.float32]]

__all__ = ["MIN_RELEVANCE", "Filters", "Found", "Passage", "search"]

logger = structlog.get_logger(__name__)

BOTH_ARMS: Final = ("words", "vectors")
DEFAULT_K: Final = 8
MAX_K: Final = 50

RERANKED: Final = 40
"""Chunks shown to a reranker: where the right one is not among them, it is mostly not found."""

MIN_RELEVANCE: Final = 0.2
"""Below it nothing that was found is worth showing to a model; see docs/retrieval.md."""


@dataclass(frozen=True, slots=True)
class Found:
    """`notes`: in plain words, which part of the search had to be left out."""

    passages: list[Passage]
    notes: list[str]

    @property
    def relevant(self) -> list[Passage]:
        return [passage for passage in self.passages if passage.relevance >= MIN_RELEVANCE]


def search(
    libraries: Sequence[Library],
    query: str,
    *,
    k: int = DEFAULT_K,
    filters: Filters | None = None,
    query_vectors: "QueryVectors | None" = None,
    user_id: UUID | None = None,
    arms: Collection[str] = BOTH_ARMS,
) -> Found:
    """At most `k` passages, best first.

    `query_vectors`, by the id of the embedding model, spare the call of a provider; `user_id` is
    who pays for one. `arms`: "words", "vectors" or both, to see what each does alone. Costs four to eight queries, and at most one second of waiting for a provider.
    """
    scopes = [scope for scope in scopes_of(libraries, filters) if scope.chunk_count]
    if not scopes or not query.strip():
        return Found([], [])
    notes: list[str] = []
    words = find_by_words(scopes, query) if "words" in arms else TextArm()
    organization_id = libraries[0].organization_id
    asking = _Asking(organization_id, user_id, query, query_vectors or {}, notes)
    asked = scopes if "vectors" in arms else []
    vectors = [arm for scope in asked if (arm := asking.arm(scope, words)) is not None]
    ranked = fuse(words, vectors)
    hits = hits_of(ranked[: max(RERANKED, 4 * k)], [library.pk for library in libraries])
    if rerank.is_configured():
        hits = _reranked(query, hits, notes)
    return Found(passages_of(hits, count=k), notes)


@dataclass(frozen=True, slots=True)
class _Asking:
    """One question, put to the vectors of one scope after the other."""

    organization_id: UUID
    user_id: UUID | None
    query: str
    known: "QueryVectors"
    notes: list[str]

    def arm(self, scope: Scope, words: TextArm) -> VectorArm | None:
        """None if there is no vector for the question."""
        vector = self._vector(scope)
        if vector is None:
            return None
        surveys = list(
            VectorSurvey.objects.filter(
                library__in=scope.library_ids, embedding_model=scope.model.pk
            )
        )
        return find_by_vector(
            Asked(
                scope=scope,
                vector=vector,
                compared=[hit.id for hit in words.hits[:FIRST_HITS]],
                sample=[pk for each in surveys for pk in each.sample],
                lift=lift_of(surveys, self.query),
            )
        )

    def _vector(self, scope: Scope) -> "NDArray[np.float32] | None":
        if scope.model.pk in self.known:
            return self.known[scope.model.pk]
        try:
            return embed_query(
                self.query,
                model=scope.model,
                organization_id=self.organization_id,
                user_id=self.user_id,
            )
        except (ProviderError, UnsealError) as error:
            logger.warning("query_not_embedded", model=scope.model.alias, reason=str(error))
            self.notes.append("The embedding model did not answer; words alone were searched.")
            return None


def _reranked(query: str, hits: Sequence[Hit], notes: list[str]) -> list[Hit]:
    """The first RERANKED in the reranker's order, with its scores; as they were if it fails."""
    shown, rest = hits[:RERANKED], hits[RERANKED:]
    if not shown:
        return list(hits)
    try:
        order = rerank.rerank(query, [hit.chunk.content for hit in shown])
    except rerank.RerankError as error:
        logger.warning("reranker_failed", reason=str(error))
        notes.append("The reranker did not answer; the order is the one without it.")
        return list(hits)
    return [_scored(shown[place], score) for place, score in order] + list(rest)


def _scored(hit: Hit, score: float) -> Hit:
    ranked: Ranked = replace(hit.ranked, score=score)
    return Hit(ranked, hit.chunk)
