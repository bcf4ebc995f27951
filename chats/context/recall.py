"""Find the sealed blocks of a conversation that matter to a question.

It searches by keywords and by vectors, over the active path only and before the tail, in at most
three queries. `engine.context.recall` decides what is relevant. Nothing of another chat is ever
found.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.conf import settings

from amber.lib.search.hybrid import NearestVectors, Pool, search_keywords, search_vectors
from chats.messages.block_paths import chat_word
from chats.models import MessageBlock
from engine.context.budget import cut_text
from engine.context.recall import choose, relevances
from engine.text import tokens
from engine.text.lexical import COMMON_WORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FUNCTION: Final = "amber_blocks_with(%(queries)s::tsquery[], %(chat)s)"
_ON_PATH: Final = "chat_id = %(chat)s AND on_active_path AND last_position < %(before)s"


@dataclass(frozen=True, slots=True)
class Recalled:
    """One block, and its relevance, 0 to 1."""

    id: UUID
    content: str
    from_at: datetime
    until_at: datetime
    tokens: int
    relevance: float


@dataclass(frozen=True, slots=True)
class Recall:
    """`taken` in the order they were said; `left_out` are relevant blocks that did not fit."""

    taken: Sequence[Recalled] = ()
    left_out: Sequence[UUID] = ()


def recall(
    chat_id: UUID,
    question: str,
    *,
    before_position: int,
    limit_tokens: int,
    vector: "NDArray[np.float32] | None" = None,
    model_id: UUID | None = None,
) -> Recall:
    """Return the blocks that end before this position and matter to the question.

    `model_id` names the vector's embedding model. Without a vector, by words alone.
    """
    where = {"chat": chat_id, "before": before_position}
    pool = Pool("chats_messageblock", _FUNCTION, chat_word(chat_id), _ON_PATH, where)
    matches = search_keywords(pool, question, but=COMMON_WORDS)
    nearest = NearestVectors()
    if vector is not None and model_id is not None:
        nearest = search_vectors(pool, vector, model_id=model_id)
    relevant = relevances(matches, nearest)
    rows = list(MessageBlock.objects.filter(pk__in=relevant).defer("vector", "search"))
    costs = {row.pk: _cost(row.tokens) for row in rows}
    taken, left_out = choose(relevant, costs, limit_tokens=limit_tokens)
    return Recall(
        taken=[
            as_recalled(row, relevant[row.pk])
            for row in sorted(rows, key=lambda row: row.last_position)
            if row.pk in taken
        ],
        left_out=left_out,
    )


def as_recalled(row: MessageBlock, relevance: float = 1.0) -> Recalled:
    """Return the block as the model reads it, cut if it is one long exchange."""
    content = row.full_content
    if row.tokens > _cost(row.tokens):
        limit_tokens = _cost(row.tokens)
        content = cut_text(content, limit_tokens=limit_tokens, count=tokens.count_text)
    return Recalled(row.pk, content, row.from_at, row.until_at, _cost(row.tokens), relevance)


def _cost(block_tokens: int) -> int:
    """Return the tokens it takes: a block of one long exchange is recalled in part."""
    return min(block_tokens, 2 * settings.AMBER_BLOCK_TOKENS)
