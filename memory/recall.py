"""Finds what is known of a person that matters to a question; nothing is a valid outcome.

By words and by meaning, over what holds now, in at most three queries. `engine.recall` decides.
"""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from amber.lib.hybrid import ByMeaning, Pool, by_meaning, by_words
from engine import tokens
from engine.lexical import COMMON_WORDS
from engine.recall import choose, relevances
from memory.models import Memory
from memory.owner import Owner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_RELEVANCE: Final = 0.25
"""Lower than for earlier talk: a fact is one sentence, so it shares fewer words with a question
and costs little when it does not help."""

_VALID: Final = (
    "organization_id = %(organization)s AND user_id IS NOT DISTINCT FROM %(user)s"
    " AND guest_id IS NOT DISTINCT FROM %(guest)s AND valid_until IS NULL"
    " AND (assistant_id IS NULL OR assistant_id = %(assistant)s)"
)


def recall(
    owner: Owner,
    question: str,
    *,
    limit_tokens: int,
    assistant_id: UUID | None = None,
    vector: "NDArray[np.float32] | None" = None,
    model_id: UUID | None = None,
) -> dict[Memory, float]:
    """The memories that matter with their relevance, best first, within the budget.

    Those of all assistants and of this one. Without a vector, by words alone.
    """
    where = {
        "organization": owner.organization_id,
        "user": owner.user_id,
        "guest": owner.guest_id,
        "assistant": assistant_id,
    }
    pool = Pool("memory_memory", owner.word, _VALID, where)
    words = by_words(pool, question, but=COMMON_WORDS)
    meaning = ByMeaning()
    if vector is not None and model_id is not None:
        meaning = by_meaning(pool, vector, model_id=model_id)
    relevant = relevances(words, meaning, least=MIN_RELEVANCE)
    rows = Memory.objects.filter(pk__in=relevant).defer("vector", "search").in_bulk()
    costs = {pk: tokens.count_text(row.content) for pk, row in rows.items()}
    taken, _ = choose(relevant, costs, limit_tokens=limit_tokens)
    return {rows[pk]: relevant[pk] for pk in taken}
