"""Finds the sealed blocks of a conversation that matter to a question.

By words and by meaning at once, over the active path only and before the tail, in at most three
queries. `engine.recall` decides what is relevant. Refuses to find anything of another chat.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connection

from amber.lib.words import asked_words, word_literal
from chats.block_paths import chat_word
from chats.models import MessageBlock
from engine import tokens as token_counts
from engine.budget import cut_text
from engine.lexical import is_common
from engine.recall import Candidate, Crowd, choose, score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_WORDS: Final = 32
"""A question has a dozen; each costs one look into the index."""

_CANDIDATES: Final = 40

_BY_WORDS_SQL: Final = """
WITH asked AS (
    SELECT * FROM unnest(%(words)s::text[], %(queries)s::tsquery[]) AS a (word, query)
), hits AS MATERIALIZED (
    SELECT asked.word, b.id, b.tokens FROM asked CROSS JOIN LATERAL (
        SELECT id, tokens FROM chats_messageblock
        WHERE search @@ asked.query AND on_active_path AND last_position < %(before)s
    ) b
), total AS (
    SELECT count(*) AS blocks FROM chats_messageblock
    WHERE chat_id = %(chat)s AND on_active_path AND last_position < %(before)s
), counts AS (
    SELECT word, count(*) AS blocks FROM hits GROUP BY word
)
SELECT hits.id, hits.tokens, array_agg(hits.word), (SELECT blocks FROM total),
    (SELECT jsonb_object_agg(word, blocks) FROM counts)
FROM hits JOIN counts USING (word)
GROUP BY hits.id, hits.tokens
ORDER BY sum(ln(1 + ((SELECT blocks FROM total) - counts.blocks + 0.5) / (counts.blocks + 0.5))) DESC
LIMIT %(limit)s
"""

_BY_MEANING_SQL: Final = """
SELECT id, tokens, near, count(*) OVER (), avg(near) OVER (), stddev_pop(near) OVER () FROM (
    SELECT id, tokens, 1 - (vector <=> %(vector)s::halfvec) AS near FROM chats_messageblock
    WHERE chat_id = %(chat)s AND on_active_path AND last_position < %(before)s
        AND embedding_model_id = %(model)s
) b ORDER BY near DESC LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Recalled:
    """One block, and how relevant it is, 0 to 1."""

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
    embedding_model_id: UUID | None = None,
) -> Recall:
    """The blocks that end before this position and matter to the question.

    Without a vector, by words alone. Nothing for a question of no words.
    """
    where = {"chat": chat_id, "before": before_position, "limit": _CANDIDATES}
    words = [word for word in asked_words(question) if not is_common(word)][:MAX_WORDS]
    by_key: dict[str, Candidate] = {}
    frequencies, total = _add_by_words(by_key, words, where)
    crowd = Crowd()
    if vector is not None:
        crowd = _add_by_meaning(
            by_key, {**where, "vector": str(vector.tolist()), "model": embedding_model_id}
        )
    scored = score(by_key.values(), frequencies=frequencies, total=total, crowd=crowd)
    taken, left_out = choose(scored, limit_tokens=limit_tokens)
    return Recall(
        taken=_read({UUID(one.candidate.key): one.relevance for one in taken}),
        left_out=[UUID(one.candidate.key) for one in left_out],
    )


def _add_by_words(
    by_key: dict[str, Candidate], words: Sequence[str], where: dict[str, Any]
) -> tuple[dict[str, int], int]:
    """How many blocks hold each word, and how many there are."""
    frequencies = dict.fromkeys(words, 0)
    if not words:
        return frequencies, 0
    chat = word_literal(chat_word(where["chat"]))
    queries = [f"{chat} & {word_literal(word)}" for word in words]
    with connection.cursor() as cursor:
        cursor.execute(_BY_WORDS_SQL, {**where, "words": list(words), "queries": queries})
        rows = cursor.fetchall()
    for pk, tokens, held, _, counts in rows:
        by_key[str(pk)] = Candidate(str(pk), _cost(tokens), words=frozenset(held))
        frequencies |= counts
    return frequencies, rows[0][3] if rows else 0


def _add_by_meaning(by_key: dict[str, Candidate], where: dict[str, Any]) -> Crowd:
    """How similar the blocks are over all: that of the best tells nothing by itself."""
    crowd = Crowd()
    with connection.cursor() as cursor:
        cursor.execute(_BY_MEANING_SQL, where)
        for pk, tokens, near, count, mean, deviation in cursor.fetchall():
            words = by_key[str(pk)].words if str(pk) in by_key else frozenset()
            by_key[str(pk)] = Candidate(str(pk), _cost(tokens), near, words)
            crowd = Crowd(count, mean, deviation)
    return crowd


def _cost(tokens: int) -> int:
    """A block of one long exchange is recalled in part."""
    return min(tokens, 2 * settings.AMBER_BLOCK_TOKENS)


def _read(relevance: dict[UUID, float]) -> list[Recalled]:
    if not relevance:
        return []
    rows = MessageBlock.objects.filter(pk__in=relevance).order_by("last_position")
    fields = rows.values_list("pk", "full_content", "from_at", "until_at", "tokens")
    return [
        Recalled(pk, _cut(content, tokens), from_at, until_at, _cost(tokens), relevance[pk])
        for pk, content, from_at, until_at, tokens in fields
    ]


def _cut(content: str, tokens: int) -> str:
    if tokens == _cost(tokens):
        return content
    return cut_text(content, limit_tokens=_cost(tokens), count=token_counts.count_text)
