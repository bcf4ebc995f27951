"""Find chunks by the words of a question: BM25 over some libraries, by the GIN index.

    score = sum over words of idf · tf (k1 + 1) / (tf + k1 (1 - b + b · length / mean length))

(Robertson and Zaragoza, https://www.staff.city.ac.uk/~sbrp622/papers/foundations_bm25_review.pdf;
`ts_rank` knows no idf: `engine.relevance.measures` has it.) One statement: each word is looked up
alone, which tells how many chunks of these libraries have it (n); the chunks with the most of the
question's rare words are kept, and only their words are counted. Words that more than MOST_HITS
chunks have are not looked up further: they choose no chunk, and weigh what they weigh among those
chosen.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import orjson
from django.db import connection

from amber.lib.database.plans import with_own_plans
from amber.lib.search.words import word_literal
from engine.relevance.measures import PASSAGES, coverage, idf
from libraries.chunking.chunk_words import AskedWord, library_word, occurrences_of, words_asked
from libraries.retrieval.ranking import KeywordResult, TextHit
from libraries.retrieval.scope import SearchScope

K1: Final = 1.2
B: Final = 0.75
"""The textbook's values; none was fitted."""

MOST_HITS: Final = 3_000
"""Limit of one word. Libraries of so many chunks are ranked exactly; in larger ones such a word is
common."""

CANDIDATES: Final = 100


def search_keywords(scopes: Sequence[SearchScope], query: str) -> KeywordResult:
    """Find at most CANDIDATES hits, best first. One query; none for a question without words."""
    words = words_asked(query)
    scopes = [scope for scope in scopes if scope.library_ids]
    if not words or not scopes:
        return KeywordResult()
    rows = _rows(scopes, words)
    if not rows:
        return KeywordResult()
    total = max(sum(scope.chunk_count for scope in scopes), *rows[0][3].values())
    counts = {number: rows[0][3].get(str(number + 1), 0) for number in range(len(words))}
    return _rank_rows([row[:3] for row in rows], counts, total, words)


_Row = tuple[UUID, int, list[float]]
"""A chunk, its length in tokens, and the `ts_rank` of each word."""


def _rank_rows(
    rows: Sequence[_Row], counts: Mapping[int, int], total: int, words: Sequence[AskedWord]
) -> KeywordResult:
    mean_length = sum(length for _, length, _ in rows) / len(rows) or 1.0
    occurrences = [[occurrences_of(rank) for rank in ranks] for _, _, ranks in rows]
    idfs = _idfs(occurrences, counts, total)
    shares = _shares(idfs, counts, words)
    whole = sum(shares)
    hits = []
    for (pk, length, _), found in zip(rows, occurrences, strict=True):
        damping = K1 * (1 - B + B * length / mean_length)
        score = sum(
            weight * tf * (K1 + 1) / (tf + damping)
            for weight, tf in zip(idfs, found, strict=True)
            if tf
        )
        held = sum(share for share, tf in zip(shares, found, strict=True) if tf)
        hits.append(TextHit(pk, score, coverage(held, whole)))
    hits.sort(key=lambda hit: (-hit.score, hit.id))
    is_cut = len(hits) == CANDIDATES
    return KeywordResult(hits, hits[-1].score if is_cut else 0.0)


def _shares(
    idfs: Sequence[float], counts: Mapping[int, int], words: Sequence[AskedWord]
) -> list[float]:
    """Return each word's share of the question: its rarity, if it tells something or none does."""
    any_tells = any(word.tells for word in words)
    return [
        weight
        * (word.tells or not any_tells)
        * PASSAGES.weigh_absence(counts[number], is_pair=word.is_pair)
        for number, (weight, word) in enumerate(zip(idfs, words, strict=True))
    ]


def _idfs(
    occurrences: Sequence[Sequence[int]], counts: Mapping[int, int], total: int
) -> list[float]:
    """Return the idf of each word.

    A word that was not counted to the end weighs no more than it does among the chosen chunks.
    """
    idfs = []
    for number, counted in counts.items():
        weight = idf(counted, total)
        if counted > MOST_HITS:
            having = sum(1 for found in occurrences if found[number])
            weight = min(weight, idf(having, len(occurrences)))
        idfs.append(weight)
    return idfs


# `search || ''` unpacks a chunk's words once for all ranks, which OFFSET 0 keeps so.
_SQL: Final = """
WITH asked AS (
    SELECT * FROM unnest(%s::tsquery[]) WITH ORDINALITY AS a (word, number)
), hits AS MATERIALIZED (
    {found}
), counts AS (
    SELECT number, count(*) AS held, count(*) > {most} AS is_common FROM hits GROUP BY number
), chosen AS (
    SELECT hits.id FROM hits JOIN counts USING (number)
    WHERE NOT is_common OR NOT EXISTS (SELECT 1 FROM counts WHERE NOT is_common)
    GROUP BY hits.id
    ORDER BY sum(ln(1 + greatest(%s::float8 - held + 0.5, 0.5) / (held + 0.5))) DESC, hits.id
    LIMIT {candidates}
)
SELECT words.id, words.tokens,
    ARRAY(SELECT ts_rank('{{1,1,1,1}}', words.search, word) FROM asked ORDER BY number),
    (SELECT jsonb_object_agg(number, held) FROM counts)
FROM chosen CROSS JOIN LATERAL (
    SELECT id, tokens, search || '' AS search FROM libraries_documentchunk
    WHERE id = chosen.id OFFSET 0
) words
"""


_FOUND: Final = """SELECT number, id
    FROM amber_chunks_with(%s::tsquery[], %s, %s::uuid[], %s::uuid[], %s)"""


@with_own_plans()
def _rows(scopes: Sequence[SearchScope], words: Sequence[AskedWord]) -> list[Any]:
    total = sum(scope.chunk_count for scope in scopes)
    places = [word_literal(library_word(pk)) for scope in scopes for pk in scope.library_ids]
    literals = [word.literal for word in words]
    queries = [f"({' | '.join(places)}) & ({literal})" for literal in literals]
    sql = _SQL.format(
        found=" UNION ALL ".join([_FOUND] * len(scopes)), most=MOST_HITS, candidates=CANDIDATES
    )
    within = [
        value
        for scope in scopes
        for value in (
            queries,
            scope.model.pk,
            list(scope.library_ids),
            None if scope.document_ids is None else list(scope.document_ids),
            MOST_HITS,
        )
    ]
    with connection.cursor() as cursor:
        cursor.execute(sql, [literals, *within, total])
        rows = cursor.fetchall()
    return [(pk, length, ranks, _decode_counts(counts)) for pk, length, ranks, counts in rows]


def _decode_counts(counts: Any) -> dict[str, int]:
    decoded: dict[str, int] = orjson.loads(counts) if isinstance(counts, str | bytes) else counts
    return decoded
