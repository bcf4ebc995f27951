"""Find chunks by the words of a question: BM25 over some libraries, by the GIN index.

`ts_rank` knows no rarity; `engine.relevance.bm25` has the formula. One statement: each word is looked
up alone, in all forms that these libraries may hold it in, which tells how many chunks have it; the
chunks with the most of the question's rare words are kept, and only their words are counted. Words
that more than MOST_HITS chunks have are not looked up further: they choose no chunk, and weigh what
they weigh among those chosen.

A word is as rare as it is among chunks in the question's language: "und" is in every German chunk of
a library that is English for the most part.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson
from django.db import connection

from amber.lib.database.plans import with_own_plans
from amber.lib.search.languages import add_up
from amber.lib.search.words import word_literal
from engine.relevance.bm25 import COMMON_SHARE, score
from engine.relevance.measures import PASSAGES, coverage, idf
from libraries.chunking.chunk_words import AskedWord, library_word, occurrences_of, words_asked
from libraries.retrieval.ranking import KeywordResult, TextHit
from libraries.retrieval.scope import SearchScope

MOST_HITS: Final = 3_000
"""Limit of one word. Libraries of so many chunks are ranked exactly; in larger ones such a word is
common."""

CANDIDATES: Final = 100


def search_keywords(scopes: Sequence[SearchScope], query: str) -> KeywordResult:
    """Find at most CANDIDATES hits, best first. One query; none for a question without words."""
    scopes = [scope for scope in scopes if scope.library_ids]
    languages = add_up(scope.languages for scope in scopes)
    is_early = any(scope.is_early for scope in scopes)
    asked = words_asked(query, languages, is_early=is_early)
    if not asked.words or not scopes:
        return KeywordResult()
    total = sum(scope.chunk_count for scope in scopes)
    comparable = _comparable(total, languages, asked.language)
    rows = _rows(scopes, asked.words, comparable)
    if not rows:
        return KeywordResult()
    held = [rows[0][3].get(str(number), 0) for number in range(1, len(asked.words) + 1)]
    counts = _Counts(held, max(total, *held), comparable)
    return _rank_rows([row[:3] for row in rows], counts, asked.words)


def _comparable(total: int, languages: Mapping[str, int], language: str) -> int:
    """Return how many of the chunks are in the question's language; all if it has none."""
    share = languages.get(language, 0) / (sum(languages.values()) or 1)
    return max(1, round(total * share)) if share else total


_Row = tuple[UUID, int, list[float]]
"""A chunk, its length in tokens, and the `ts_rank` of each form of each word."""


@dataclass(frozen=True, slots=True)
class _Counts:
    """How many chunks hold each word, of all of them and of those in the question's language."""

    held: Sequence[int]
    total: int
    comparable: int


def _rank_rows(rows: Sequence[_Row], counts: _Counts, words: Sequence[AskedWord]) -> KeywordResult:
    mean_length = sum(length for _, length, _ in rows) / len(rows)
    numbers = [number for number, word in enumerate(words) for _ in word.literals]
    occurrences = [_occurrences(ranks, numbers) for _, _, ranks in rows]
    most = _most(occurrences, counts)
    shares = _shares(counts, most, words)
    whole = sum(shares)
    ranking = {
        number: min(idf(held, counts.comparable), most[number])
        * (1.0 if words[number].tells else COMMON_SHARE)
        for number, held in enumerate(counts.held)
    }
    hits = []
    for (pk, length, _), found in zip(rows, occurrences, strict=True):
        ranked = score(ranking, found, length=length, mean_length=mean_length)
        held = sum(shares[number] for number in found)
        hits.append(TextHit(pk, ranked, coverage(held, whole)))
    hits.sort(key=lambda hit: (-hit.score, hit.id))
    is_cut = len(hits) == CANDIDATES
    weights = {form: ranking[number] for number, word in enumerate(words) for form in word.forms}
    return KeywordResult(hits, hits[-1].score if is_cut else 0.0, weights)


def _occurrences(ranks: Sequence[float], numbers: Sequence[int]) -> dict[int, int]:
    """Return how often a chunk has each word that it has, in any form, by the word's number.

    `numbers` are the words' whose forms the ranks are of.
    """
    counted: dict[int, int] = {}
    for number, rank in zip(numbers, ranks, strict=True):
        if rank > 0:
            counted[number] = counted.get(number, 0) + occurrences_of(rank)
    return counted


def _shares(counts: _Counts, most: Sequence[float], words: Sequence[AskedWord]) -> list[float]:
    """Return each word's share of the question: its rarity. A word that tells nothing has none, unless no word does."""
    any_tells = any(word.tells for word in words)
    return [
        min(PASSAGES.rarity(held, counts.total), limit)
        * (word.tells or not any_tells)
        * PASSAGES.weigh_absence(held, is_pair=word.is_pair)
        for held, limit, word in zip(counts.held, most, words, strict=True)
    ]


def _most(occurrences: Sequence[Mapping[int, int]], counts: _Counts) -> list[float]:
    """Return the most that each word can weigh.

    One that was not counted to the end weighs no more than it does among the chosen chunks.
    """
    return [
        idf(sum(1 for found in occurrences if number in found), len(occurrences))
        if held > MOST_HITS
        else math.inf
        for number, held in enumerate(counts.held)
    ]


# Chunks are chosen by the idf of `engine.relevance.measures`. `occurrences_of` reads ranks by
# weights of 1; words without a label would weigh a tenth.
# `search || ''` unpacks a chunk's words once for all ranks, which OFFSET 0 keeps so.
_SQL: Final = """
WITH asked AS (
    SELECT * FROM unnest(%s::tsquery[]) WITH ORDINALITY AS a (form, number)
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
    ARRAY(SELECT ts_rank('{{1,1,1,1}}', words.search, form) FROM asked ORDER BY number),
    (SELECT jsonb_object_agg(number, held) FROM counts)
FROM chosen CROSS JOIN LATERAL (
    SELECT id, tokens, search || '' AS search FROM libraries_documentchunk
    WHERE id = chosen.id OFFSET 0
) words
"""


# Declared in `accounts.tenancy.wall_functions`, which says why it must be a function.
_FOUND_SQL: Final = """SELECT number, id
    FROM amber_chunks_with(%s::tsquery[], %s, %s::uuid[], %s::uuid[], %s)"""


@with_own_plans()
def _rows(scopes: Sequence[SearchScope], words: Sequence[AskedWord], total: int) -> list[Any]:
    places = [word_literal(library_word(pk)) for scope in scopes for pk in scope.library_ids]
    forms = [literal for word in words for literal in word.literals]
    queries = [f"({' | '.join(places)}) & ({word.literal})" for word in words]
    sql = _SQL.format(
        found=" UNION ALL ".join([_FOUND_SQL] * len(scopes)), most=MOST_HITS, candidates=CANDIDATES
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
        cursor.execute(sql, [forms, *within, total])
        rows = cursor.fetchall()
    # Django leaves `jsonb` as text, wherever no field of a model reads it.
    return [(pk, length, ranks, orjson.loads(counts)) for pk, length, ranks, counts in rows]
