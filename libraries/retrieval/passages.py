"""Make passages to read and cite of the chunks that search ranked, with exact offsets.

    passage.content == document.text[passage.start : passage.end]

A passage is a stretch of one chunk, or of several that overlap or touch: the sentences that matter to the
question (`libraries.retrieval.stretches`). Passages have the order of their best chunks.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Annotated, Final, NamedTuple, TypedDict
from uuid import UUID

from django.db import connection

from amber.lib.wire_fields import Id
from engine.relevance.measures import PASSAGES
from libraries.retrieval.ranking import RankedChunk
from libraries.retrieval.stretches import FoundChunk, FoundRun, Stretch, choose_stretches

MIN_RELEVANCE: Final = PASSAGES.least
"""Passages below it are not worth showing to a model; see docs/retrieval.md."""

MAX_JOINED: Final = 6
"""Limit of chunks in one passage: with the usual 200 tokens, two pages."""

LEAST_LOOKED_AT: Final = 15
"""Sentences of at least so many chunks are examined: with five, a twentieth of the answers is missed."""


@dataclass(frozen=True, slots=True)
class PassageDocument:
    id: UUID
    name: str
    path: str | None


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document that search found. `number` counts from 1, best first.

    `page` is where it begins; ranks and scores are those of its best chunk. A `score` of 1 means
    first in every retriever that counts; with a reranker it is the reranker's. `relevance` is from
    0 to 1, to be compared with a threshold.
    """

    number: int
    chunk_ids: tuple[UUID, ...]
    content: str
    document: PassageDocument
    library_id: UUID
    start: int
    end: int
    page: int | None
    heading: str | None
    score: float
    relevance: float
    text_rank: int | None
    vector_rank: int | None
    is_filler: bool = False
    """Whether it is far behind the best, and only included because more passages were asked for."""


class FoundDocumentWire(TypedDict):
    id: Id
    name: str
    path: str | None


class PassageWire(TypedDict):
    number: Annotated[int, "Counts from 1, best first."]
    chunk_ids: list[Id]
    content: Annotated[str, "The document's text from `start` to `end`."]
    document: FoundDocumentWire
    library_id: Id
    start: int
    end: int
    page: int | None
    heading: str | None
    score: Annotated[
        float, "1 for the first by words and by meaning. With a reranker, the reranker's score."
    ]
    relevance: Annotated[
        float, f"From 0 to 1; models are not shown passages below {MIN_RELEVANCE}."
    ]
    vector_rank: Annotated[
        int | None, "Rank among all chunks by meaning; null beyond the first 100."
    ]
    text_rank: Annotated[int | None, "Rank by words; null without any of the words, or far behind."]


def passage_wire(passage: Passage) -> PassageWire:
    document = passage.document
    return {
        "number": passage.number,
        "chunk_ids": [str(pk) for pk in passage.chunk_ids],
        "content": passage.content,
        "document": {"id": str(document.id), "name": document.name, "path": document.path},
        "library_id": str(passage.library_id),
        "start": passage.start,
        "end": passage.end,
        "page": passage.page,
        "heading": passage.heading,
        "score": round(passage.score, 4),
        "relevance": round(passage.relevance, 4),
        "vector_rank": passage.vector_rank,
        "text_rank": passage.text_rank,
    }


class ChunkText(NamedTuple):
    """A chunk as passages need it; `name` and `path` are the document's."""

    id: UUID
    document_id: UUID
    library_id: UUID
    embedding_model_id: UUID
    order: int
    start: int
    end: int
    page: int | None
    heading: str | None
    content: str
    name: str
    path: str | None
    page_starts: Sequence[int]
    """Where pages begin inside it, as offsets in the document."""


@dataclass(frozen=True, slots=True)
class ChunkHit:
    """A ranked chunk with its text."""

    ranked: RankedChunk
    chunk: ChunkText


def hits_of(
    ranked: Sequence[RankedChunk], library_ids: Sequence[UUID], *, at_once: int
) -> Iterator[ChunkHit]:
    """Yield the ranked chunks with their texts, in the order given.

    Rows that are gone meanwhile, or not of these libraries, are left out. One query for each
    `at_once` that are taken.
    """
    for start in range(0, len(ranked), at_once):
        part = ranked[start : start + at_once]
        with connection.cursor() as cursor:
            cursor.execute(_TEXTS_SQL, [[each.id for each in part], list(library_ids)])
            texts = {row[0]: ChunkText(*row) for row in cursor.fetchall()}
        yield from (ChunkHit(each, texts[each.id]) for each in part if each.id in texts)


_TEXTS_SQL: Final = """
SELECT c.id, c.document_id, c.library_id, c.embedding_model_id, c."order", c.start, c."end",
    c.page, c.heading, c.content, d.name, d.path,
    ARRAY(SELECT p FROM unnest(d.pages) AS p WHERE c.page IS NOT NULL AND p > c.start AND p < c."end")
FROM libraries_documentchunk c JOIN libraries_document d ON d.id = c.document_id
WHERE c.id = ANY(%s) AND c.library_id = ANY(%s)
"""


def chunks_looked_at(count: int) -> int:
    """Return how many of the best chunks are examined to make this number of passages."""
    return max(LEAST_LOOKED_AT, count)


def passages_of(
    hits: Iterable[ChunkHit], weights: Mapping[str, float], *, count: int
) -> list[Passage]:
    """Return at most `count` passages, best first. One more query if joined chunks do not touch.

    `weights` are those of the question's words.
    """
    looked_at = list(islice(hits, chunks_looked_at(count)))
    groups: list[list[ChunkHit]] = []
    for hit in looked_at:
        group = _neighbours(groups, hit)
        if group is not None:
            group.append(hit)
        else:
            groups.append([hit])
    ranks = {hit.chunk.id: rank for rank, hit in enumerate(looked_at)}
    runs = [
        FoundRun(
            content, [_found_chunk(hit, ranks[hit.chunk.id], _start_of(group)) for hit in group]
        )
        for group, content in zip(groups, _contents(groups), strict=True)
    ]
    return [
        _passage(number, groups[stretch.run], runs[stretch.run], stretch)
        for number, stretch in enumerate(choose_stretches(runs, weights, count=count), 1)
    ]


def _neighbours(groups: Iterable[list[ChunkHit]], hit: ChunkHit) -> list[ChunkHit] | None:
    """Return the group of chunks that this one adjoins, before or behind; None if there is none."""
    for group in groups:
        orders = [other.chunk.order for other in group]
        is_near = min(orders) - 1 <= hit.chunk.order <= max(orders) + 1
        is_same = group[0].chunk.document_id == hit.chunk.document_id
        is_same = is_same and group[0].chunk.embedding_model_id == hit.chunk.embedding_model_id
        if is_same and is_near and len(group) < MAX_JOINED:
            return group
    return None


def _start_of(group: Iterable[ChunkHit]) -> int:
    return min(hit.chunk.start for hit in group)


def _found_chunk(hit: ChunkHit, rank: int, start: int) -> FoundChunk:
    chunk, ranked = hit.chunk, hit.ranked
    return FoundChunk(chunk.start - start, chunk.end - start, rank, ranked.strength, ranked.is_near)


def _passage(number: int, group: Sequence[ChunkHit], run: FoundRun, stretch: Stretch) -> Passage:
    """Make a passage of a stretch, and of the chunks that have a part of it."""
    offset = _start_of(group)
    start, end = offset + stretch.start, offset + stretch.end
    held = [hit for hit in group if hit.chunk.start < end and hit.chunk.end > start]
    held = held or [_last_before(group, start)]  # between two chunks, in what neither holds
    # A group has its chunks in the order of their ranks.
    best, chunks = held[0], sorted((hit.chunk for hit in held), key=lambda chunk: chunk.order)
    return Passage(
        number=number,
        chunk_ids=tuple(chunk.id for chunk in chunks),
        content=run.text[stretch.start : stretch.end],
        document=PassageDocument(best.chunk.document_id, best.chunk.name, best.chunk.path),
        library_id=best.chunk.library_id,
        start=start,
        end=end,
        page=_page_at(group, start),
        heading=best.chunk.heading,
        score=best.ranked.score,
        relevance=max(hit.ranked.relevance for hit in held),
        text_rank=best.ranked.text_rank,
        vector_rank=best.ranked.vector_rank,
        is_filler=stretch.is_filler,
    )


def _last_before(group: Sequence[ChunkHit], start: int) -> ChunkHit:
    """Return the last chunk that begins there or before."""
    before = [hit for hit in group if hit.chunk.start <= start]
    return max(before, key=lambda hit: hit.chunk.start)


def _page_at(group: Sequence[ChunkHit], start: int) -> int | None:
    """Return the page that an offset in one of the chunks, or between two, is on."""
    chunk = _last_before(group, start).chunk
    if chunk.page is None:
        return None
    return chunk.page + sum(1 for begin in chunk.page_starts if begin <= start)


def _contents(groups: Sequence[Sequence[ChunkHit]]) -> list[str]:
    """Return each group's text, with what the document has between chunks that do not touch."""
    sorted_groups = [sorted((h.chunk for h in group), key=lambda c: c.order) for group in groups]
    gaps = {
        (before.document_id, before.end, after.start): ""
        for chunks in sorted_groups
        for before, after in pairwise(chunks)
        if after.start > before.end
    }
    known = _read(gaps)
    return [_join_chunks(chunks, known) for chunks in sorted_groups]


def _join_chunks(chunks: Sequence[ChunkText], gaps: Mapping[tuple[UUID, int, int], str]) -> str:
    text, end = chunks[0].content, chunks[0].end
    for chunk in chunks[1:]:
        text += gaps.get((chunk.document_id, end, chunk.start), "")
        text += chunk.content[max(0, end - chunk.start) :]
        end = max(end, chunk.end)
    return text


def _read(gaps: Collection[tuple[UUID, int, int]]) -> dict[tuple[UUID, int, int], str]:
    """Read the gaps from the documents' texts; one query, or none for none."""
    if not gaps:
        return {}
    ids, starts, ends = (list(column) for column in zip(*gaps, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(_GAPS_SQL, [ids, starts, ends])
        return {(pk, start, end): text for pk, start, end, text in cursor.fetchall()}


_GAPS_SQL: Final = """
SELECT d.id, g.start, g.stop, coalesce(substr(d.text, g.start + 1, g.stop - g.start), '')
FROM unnest(%s::uuid[], %s::int[], %s::int[]) AS g (id, start, stop)
JOIN libraries_document d ON d.id = g.id
"""
