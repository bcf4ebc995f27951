"""Recall what is known of a person that matters to a question; nothing is a valid outcome.

Searches valid memories by keywords and by vectors, in at most three queries;
`engine.context.recall` decides what matters.
"""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from amber.lib.search.hybrid import NearestVectors, Pool, search_keywords, search_vectors
from engine.context.recall import choose, relevances
from engine.relevance.measures import MEMORIES
from engine.text import tokens
from engine.text.lexical import COMMON_WORDS
from memory.models import Memory
from memory.owner import Owner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FUNCTION: Final = "amber_memories_with(%(queries)s::tsquery[])"


def recall(
    owner: Owner,
    question: str,
    *,
    limit_tokens: int,
    assistant_id: UUID | None = None,
    vector: "NDArray[np.float32] | None" = None,
    model_id: UUID | None = None,
) -> dict[Memory, float]:
    """Return the memories that matter with their relevance, best first, within the budget.

    Those for all assistants and for this one count. Without a vector, words alone find them.
    """
    relevant = _relevant(_known_to(owner, assistant_id), question, vector, model_id)
    rows = Memory.objects.filter(pk__in=relevant).defer("vector", "search").in_bulk()
    costs = {pk: tokens.count_text(row.content) for pk, row in rows.items()}
    taken, _ = choose(relevant, costs, limit_tokens=limit_tokens)
    return {rows[pk]: relevant[pk] for pk in taken}


def search(
    owner: Owner,
    query: str,
    *,
    limit: int,
    only_assistant_id: UUID | None = None,
    vector: "NDArray[np.float32] | None" = None,
    model_id: UUID | None = None,
) -> dict[Memory, float]:
    """Return at most `limit` memories as `recall` does, but of all assistants, or of one alone."""
    pool = _all_of(owner) if only_assistant_id is None else _only_of(owner, only_assistant_id)
    relevant = _relevant(pool, query, vector, model_id)
    best = list(relevant)[:limit]
    rows = Memory.objects.filter(pk__in=best).defer("vector", "search").in_bulk()
    return {rows[pk]: relevant[pk] for pk in best if pk in rows}


def _relevant(
    pool: Pool, question: str, vector: "NDArray[np.float32] | None", model_id: UUID | None
) -> dict[UUID, float]:
    matches = search_keywords(pool, question, but=COMMON_WORDS)
    nearest = NearestVectors()
    if vector is not None and model_id is not None:
        nearest = search_vectors(pool, vector, model_id=model_id)
    return relevances(matches, nearest, scale=MEMORIES)


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
