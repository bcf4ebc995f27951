"""Search libraries, by words and by meaning at once.

    found = search(libraries, "How do I bleed the pump?", k=5)
    found.passages[0].content

Words (`keyword_retriever`) and vectors (`vector_retriever`, once for each embedding model in use)
are asked, their rankings are fused by how far each can be trusted for this question (`ranking`), an
operator's reranker may have the last word (`providers.reranker`), and neighbours become passages (`passages`).

The caller brings libraries it may see, with their `embedding_model` and its provider selected;
nothing outside of them is found. Searching blocks. It does not fail because a provider or the
reranker does: what was left out is in `notes`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final
from uuid import UUID

import structlog
from django.db import transaction

from amber.lib.secrets import DecryptError
from amber.lib.tracing import names, spans
from engine.provider.model import ProviderError
from libraries.embedding.store import QUERY_SECONDS, embed_query
from libraries.models import Library
from libraries.retrieval.keyword_retriever import search_keywords
from libraries.retrieval.passages import (
    MIN_RELEVANCE,
    ChunkHit,
    Passage,
    chunks_looked_at,
    hits_of,
    passages_of,
)
from libraries.retrieval.ranking import FIRST_HITS, KeywordResult, VectorResult, fuse
from libraries.retrieval.scope import Filters, SearchScope, scopes_of
from libraries.retrieval.survey import lift_of, surveys_of
from libraries.retrieval.vector_retriever import VectorQuery, find_by_vector, prepare_connection
from providers import reranker
from providers.models import EmbeddingModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    QueryVectors = Mapping[UUID, NDArray[np.float32]]

__all__ = [
    "DEFAULT_K",
    "MAX_K",
    "MIN_RELEVANCE",
    "Filters",
    "Passage",
    "SearchResult",
    "search",
]

logger = structlog.get_logger(__name__)

BOTH_RETRIEVERS: Final = ("words", "vectors")
DEFAULT_K: Final = 8
MAX_K: Final = 50

NOT_EMBEDDED: Final = "The embedding model did not answer, so only words were searched."


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The passages found. `notes` say in plain words which part of the search was left out."""

    passages: list[Passage]
    notes: list[str]

    @property
    def relevant(self) -> list[Passage]:
        """Return what is worth showing to a model."""
        return [
            passage
            for passage in self.passages
            if passage.relevance >= MIN_RELEVANCE and not passage.is_filler
        ]


def search(
    libraries: Sequence[Library],
    query: str,
    *,
    k: int = DEFAULT_K,
    filters: Filters | None = None,
    query_vectors: "QueryVectors | None" = None,
    user_id: UUID | None = None,
    retrievers: Collection[str] = BOTH_RETRIEVERS,
    query_seconds: float = QUERY_SECONDS,
) -> SearchResult:
    """Find at most `k` passages, best first.

    `query_vectors`, by the id of the embedding model, spare the call of a provider; `user_id` is
    who pays for one. `retrievers` are "words", "vectors" or both, to see what each does alone.
    Costs four to eleven queries, and for each model `query_seconds` of waiting for a provider at most.
    """
    scopes = [scope for scope in scopes_of(libraries, filters) if scope.chunk_count]
    if not scopes or not query.strip():
        return SearchResult([], [])
    with spans.span(names.RETRIEVAL, {names.OPERATION: "retrieval"}) as span:
        embedder = _QueryEmbedder(libraries[0].organization_id, user_id, query, [], query_seconds)
        passages = _find_passages(scopes, embedder, k, query_vectors or {}, retrievers)
        span.set({names.PASSAGES: len(passages)})
        if spans.may_show_content():
            span.set({names.RETRIEVAL_QUERY: spans.cut_text(query)})
        return SearchResult(passages, embedder.notes)


def _find_passages(
    scopes: Sequence[SearchScope],
    embedder: "_QueryEmbedder",
    k: int,
    known: "QueryVectors",
    retrievers: Collection[str],
) -> list[Passage]:
    query = embedder.query
    vectors = embedder.vectors(scopes, known) if "vectors" in retrievers else {}
    with transaction.atomic():
        prepare_connection()
        words = search_keywords(scopes, query) if "words" in retrievers else KeywordResult()
        ranked = fuse(words, _vector_results(query, scopes, vectors, words))
    at_once = reranker.SHOWN if reranker.is_configured() else chunks_looked_at(k)
    library_ids = [pk for scope in scopes for pk in scope.library_ids]
    hits = hits_of(ranked, library_ids, at_once=at_once)
    if reranker.is_configured():
        hits = _rerank_hits(query, hits, embedder.notes)
    return passages_of(hits, words.weights, count=k)


@dataclass(frozen=True, slots=True)
class _QueryEmbedder:
    """Gets a question's vectors, or adds a note why there is none."""

    organization_id: UUID
    user_id: UUID | None
    query: str
    notes: list[str]
    timeout_seconds: float

    def vectors(
        self, scopes: Sequence[SearchScope], known: "QueryVectors"
    ) -> "dict[UUID, NDArray[np.float32]]":
        """Return the vectors by model; at most one provider call for each that is not known."""
        found = dict(known)
        for scope in scopes:
            if scope.model.pk not in found:
                vector = self._vector(scope.model)
                if vector is not None:
                    found[scope.model.pk] = vector
        return found

    def _vector(self, model: EmbeddingModel) -> "NDArray[np.float32] | None":
        try:
            return embed_query(
                self.query,
                model=model,
                organization_id=self.organization_id,
                user_id=self.user_id,
                timeout_seconds=self.timeout_seconds,
            )
        except (ProviderError, DecryptError) as error:
            logger.warning("query_not_embedded", model=model.alias, reason=str(error))
            if NOT_EMBEDDED not in self.notes:
                self.notes.append(NOT_EMBEDDED)
            return None


def _vector_results(
    query: str,
    scopes: Sequence[SearchScope],
    vectors: "Mapping[UUID, NDArray[np.float32]]",
    words: KeywordResult,
) -> list[VectorResult]:
    """Find chunks with each of the question's vectors; one query and `find_by_vector` for each."""
    retrievers = []
    for scope in scopes:
        if scope.model.pk in vectors:
            surveys = surveys_of(scope.library_ids, scope.model.pk)
            asked = VectorQuery(
                scope=scope,
                vector=vectors[scope.model.pk],
                compared=[hit.id for hit in words.hits[:FIRST_HITS]],
                sample=[pk for each in surveys for pk in each.sample],
                lift=lift_of(surveys, query),
            )
            retrievers.append(find_by_vector(asked))
    return retrievers


def _rerank_hits(query: str, hits: Iterator[ChunkHit], notes: list[str]) -> Iterator[ChunkHit]:
    """Yield the first `reranker.SHOWN` in the reranker's order and scores; as they were if it fails."""
    shown = list(islice(hits, reranker.SHOWN))
    try:
        order = reranker.rerank(query, [hit.chunk.content for hit in shown]) if shown else []
        first = order[0][1] if order else 0.0
        yield from (_with_score(shown[place], score, first) for place, score in order)
    except reranker.RerankError as error:
        logger.warning("reranker_failed", reason=str(error))
        notes.append("The reranker did not answer, so results are in their original order.")
        yield from shown
    yield from hits


def _with_score(hit: ChunkHit, score: float, first: float) -> ChunkHit:
    """Give a hit the reranker's score, which says how strong it is if the first has one above 0."""
    strength = min(1.0, max(0.0, score / first)) if first > 0 else 1.0
    return ChunkHit(hit.ranked._replace(score=score, strength=strength), hit.chunk)
