"""Find rows near a question by keywords and by vectors: the two SQL statements of every recall.

A `Pool` says which rows are searched; `engine.context.recall` decides which are relevant. The rows'
table has columns `id`, `search` (tokens of `amber.lib.search.words`, and the pool's own word, by
which the one GIN index of the table is cut down to this pool), `vector` and `embedding_model_id`.
For pools of at most some ten thousand rows: similarities are computed to all of them. Libraries,
which are larger, have their own search.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import orjson
from django.db import connection

from amber.lib.database.plans import with_own_plans
from amber.lib.search.words import asked_words, stored_words, word_literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_WORDS: Final = 32
"""A question has a dozen words; each costs one look-up in the index."""

MIN_STEMMED_CHARS: Final = 4
MIN_STEM_CHARS: Final = 3
_ENDINGS: Final = (
    "ingly",
    "ings",
    "edly",
    "ing",
    "ies",
    "ied",
    "ily",
    "ed",
    "es",
    "ly",
    "s",
    "e",
    "y",
)

MAX_FOUND: Final = 40
"""The most rows that each retriever returns; callers never need more."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The rows to search. `condition` is SQL over the table's columns, its values in `values`; it
    must never hold a stranger's text. `function` is a call that finds rows by words
    (`accounts.tenancy.wall_functions`); `queries` are its own parameter."""

    table: str
    function: str
    word: str
    condition: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeywordMatches:
    """Words that match: `held` by each row found, and in how many of all `total` rows."""

    held: Mapping[UUID, frozenset[str]] = field(default_factory=dict)
    frequencies: Mapping[str, int] = field(default_factory=dict)
    total: int = 0


@dataclass(frozen=True, slots=True)
class NearestVectors:
    """Cosine similarities of the nearest rows; count, mean and deviation of all in the pool."""

    similarities: Mapping[UUID, float] = field(default_factory=dict)
    count: int = 0
    mean: float = 0.0
    deviation: float = 0.0


def pool_word(kind: str, key: UUID | str) -> str:
    """Return a word that all rows of one pool hold and no text does."""
    return f"{kind}::{key}"


def index_text(text: str, word: str) -> str:
    """Return a row's `search` column: the pool's word and the stems of the text, without
    positions."""
    stems = dict.fromkeys(stem(token) for token in stored_words(text))
    return " ".join(map(word_literal, [word, *stems]))


@lru_cache(maxsize=10_000)
def stem(word: str) -> str:
    """Return an English word without its ending (live, lives, lived, living: liv); others
    unchanged.

    Coarser than a dictionary, and the same for text and question: two words that fall together cost
    a little precision, which the weighting by rarity makes up for.
    """
    if len(word) < MIN_STEMMED_CHARS or not (word.isascii() and word.isalpha()):
        return word
    cut = next((word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)), word)
    cut = cut if len(cut) >= MIN_STEM_CHARS else word
    return cut[:-1] if len(cut) > MIN_STEM_CHARS and cut[-1] == cut[-2] else cut


def search_keywords(
    pool: Pool, question: str, *, but: frozenset[str] = frozenset()
) -> KeywordMatches:
    """Return the rows with the rarest of the question's words. One query; none without words.

    `but`: words (in lower case) that are skipped, since they tell nothing. Words are stems.
    """
    asked = (stem(word) for word in asked_words(question) if word not in but)
    words = list(dict.fromkeys(asked))[:MAX_WORDS]
    if not words:
        return KeywordMatches()
    mine = word_literal(pool.word)
    queries = [f"{mine} & {word_literal(word)}" for word in words]
    values = {**pool.values, "words": words, "queries": queries, "limit": MAX_FOUND}
    sql = _KEYWORD_SQL.format(table=pool.table, function=pool.function, condition=pool.condition)
    rows = _rows(sql, values)
    frequencies = dict.fromkeys(words, 0)
    if rows:
        frequencies |= {word: int(count) for word, count in orjson.loads(rows[0][3]).items()}
    return KeywordMatches(
        held={pk: frozenset(held) for pk, held, _, _ in rows},
        frequencies=frequencies,
        total=int(rows[0][2]) if rows else 0,
    )


def search_vectors(pool: Pool, vector: "NDArray[np.float32]", *, model_id: UUID) -> NearestVectors:
    """Return the rows of this embedding model that are nearest to the vector. One query."""
    values = {
        **pool.values,
        "vector": str(vector.tolist()),
        "model": model_id,
        "limit": MAX_FOUND,
    }
    rows = _rows(_VECTOR_SQL.format(table=pool.table, condition=pool.condition), values)
    if not rows:
        return NearestVectors()
    return NearestVectors({row[0]: row[1] for row in rows}, *rows[0][2:])


@with_own_plans()
def _rows(sql: str, values: Mapping[str, Any]) -> Sequence[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: Sequence[Any] = cursor.fetchall()
        return rows


_KEYWORD_SQL: Final = """
WITH asked AS (
    SELECT * FROM unnest(%(words)s::text[]) WITH ORDINALITY AS a (word, number)
), hits AS MATERIALIZED (
    SELECT asked.word, {table}.id FROM {function} AS found
    JOIN asked USING (number) JOIN {table} ON {table}.id = found.id WHERE {condition}
), total AS (
    SELECT count(*)::float8 AS rows FROM {table} WHERE {condition}
), counts AS (
    SELECT word, count(*)::float8 AS rows FROM hits GROUP BY word
)
SELECT hits.id, array_agg(hits.word), (SELECT rows FROM total),
    (SELECT jsonb_object_agg(word, rows) FROM counts)
FROM hits JOIN counts USING (word)
GROUP BY hits.id
ORDER BY sum(ln(1 + ((SELECT rows FROM total) - counts.rows + 0.5::float8) / (counts.rows + 0.5::float8))) DESC
LIMIT %(limit)s
"""

_VECTOR_SQL: Final = """
SELECT id, near, count(*) OVER (), avg(near) OVER (), stddev_pop(near) OVER () FROM (
    SELECT id, 1 - (vector <=> %(vector)s::halfvec) AS near FROM {table}
    WHERE {condition} AND embedding_model_id = %(model)s
) compared ORDER BY near DESC LIMIT %(limit)s
"""
