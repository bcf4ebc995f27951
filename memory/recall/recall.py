"""Recall what is known of a person that matters to a question; nothing is a valid outcome.

Searches valid memories by keywords and by vectors, in at most three queries;
`memory.recall.relevance` decides what matters.
"""

from typing import Final
from uuid import UUID

from amber.lib.search.hybrid import (
    KeywordMatches,
    NearestVectors,
    Pool,
    search_keywords,
    search_vectors,
)
from amber.lib.tracing import names
from amber.lib.tracing.spans import trace
from engine.context.recall import choose
from engine.text import tokens
from engine.text.lexical import COMMON_WORDS
from memory.facts.facts import EmbeddedText
from memory.models import Memory
from memory.owner import Owner
from memory.recall.calibration import scales_of
from memory.recall.floors import script_of
from memory.recall.relevance import relevances
from providers.reranker import order_for_turn

_FUNCTION: Final = "amber_memories_with(%(queries)s::tsquery[])"


@trace(names.SEARCH_MEMORY)
def recall(
    owner: Owner,
    question: str,
    *,
    limit_tokens: int,
    assistant_id: UUID | None = None,
    embedded: EmbeddedText | None = None,
    words: KeywordMatches | None = None,
    is_personal: bool | None = None,
    may_rerank: bool = False,
) -> dict[Memory, float]:
    """Return the memories that matter with their relevance, best first, within the budget.

    Those for all assistants and for this one count. `embedded` is the question: without a vector, or with
    one that hashes its words, words alone find them. `is_personal` as in `memory.recall.relevance`.
    """
    pool = _known_to(owner, assistant_id)
    words = match_words(owner, question, assistant_id) if words is None else words
    relevant = _relevant(pool, question, words, embedded, is_personal=is_personal)
    rows = Memory.objects.filter(pk__in=relevant).defer("vector", "search").in_bulk()
    if may_rerank:
        texts = {pk: rows[pk].content for pk in relevant if pk in rows}
        relevant = {pk: relevant[pk] for pk in order_for_turn(question, texts)}
    costs = {pk: tokens.count_text(row.content) for pk, row in rows.items()}
    taken, _ = choose(relevant, costs, limit_tokens=limit_tokens)
    return {rows[pk]: relevant[pk] for pk in taken}


def match_words(owner: Owner, question: str, assistant_id: UUID | None) -> KeywordMatches:
    """Return which of the question's words the memories hold that `recall` chooses from. One query."""
    return search_keywords(_known_to(owner, assistant_id), question, but=COMMON_WORDS)


@trace(names.SEARCH_MEMORY)
def search(
    owner: Owner,
    query: str,
    *,
    limit: int,
    only_assistant_id: UUID | None = None,
    embedded: EmbeddedText | None = None,
) -> dict[Memory, float]:
    """Return at most `limit` memories as `recall` does, but of all assistants, or of one alone."""
    pool = _all_of(owner) if only_assistant_id is None else _only_of(owner, only_assistant_id)
    words = search_keywords(pool, query, but=COMMON_WORDS)
    relevant = _relevant(pool, query, words, embedded)
    best = list(relevant)[:limit]
    rows = Memory.objects.filter(pk__in=best).defer("vector", "search").in_bulk()
    return {rows[pk]: relevant[pk] for pk in best if pk in rows}


def nearest_to(
    owner: Owner,
    statement: str,
    *,
    assistant_id: UUID | None = None,
    embedded: EmbeddedText | None = None,
    limit: int,
) -> list[Memory]:
    """Return the memories with most of a statement's words, and the nearest by meaning: `limit` of
    each, however little that is. Three queries."""
    pool = _known_to(owner, assistant_id)
    best = list(search_keywords(pool, statement, but=COMMON_WORDS).held)[:limit]
    if embedded is not None:
        nearest = search_vectors(pool, embedded.vector, model_id=embedded.model_id)
        best += list(nearest.similarities)[:limit]
    rows = Memory.objects.filter(pk__in=best).defer("vector", "search").in_bulk()
    return [rows[pk] for pk in dict.fromkeys(best) if pk in rows]


def _relevant(
    pool: Pool,
    question: str,
    words: KeywordMatches,
    embedded: EmbeddedText | None,
    *,
    is_personal: bool | None = None,
) -> dict[UUID, float]:
    nearest, scale = NearestVectors(), None
    if embedded is not None and not embedded.is_lexical:
        nearest = search_vectors(pool, embedded.vector, model_id=embedded.model_id)
        scale = scales_of(embedded.model_id).get(script_of(question) or "")
    return relevances(question, words, nearest, scale=scale, is_personal=is_personal)


def _all_of(owner: Owner) -> Pool:
    condition = f"{owner.condition} AND valid_until IS NULL"
    return Pool("memory_memory", _FUNCTION, owner.word, condition, owner.fields)


def _known_to(owner: Owner, assistant_id: UUID | None) -> Pool:
    return _narrow_pool(
        owner, "(assistant_id IS NULL OR assistant_id = %(assistant)s)", assistant_id
    )


def _only_of(owner: Owner, assistant_id: UUID) -> Pool:
    return _narrow_pool(owner, "assistant_id = %(assistant)s", assistant_id)


def _narrow_pool(owner: Owner, condition: str, assistant_id: UUID | None) -> Pool:
    pool = _all_of(owner)
    values = {**pool.values, "assistant": assistant_id}
    return Pool(pool.table, pool.function, pool.word, f"{pool.condition} AND {condition}", values)
