"""Chunks that search ranked, as passages to read and cite: neighbours joined, offsets exact.

    passage.content == document.text[passage.start : passage.end]

Chunks of one document that overlap or touch become one passage, at the place of the better one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Func, IntegerField, TextField, Value

from libraries.models import Document, DocumentChunk
from libraries.ranking import Ranked

MAX_JOINED: Final = 4
"""Chunks of one passage: with the usual 400 tokens, two pages."""


@dataclass(frozen=True, slots=True)
class PassageDocument:
    id: UUID
    name: str
    path: str | None


@dataclass(frozen=True, slots=True)
class Passage:
    """`number` counts from 1, best first. `page` is where it begins; ranks and scores are those of
    its best chunk.

    `score`: 1 is first in every arm that counts, or the reranker's own. `relevance`: 0 to 1, to be
    held against a threshold.
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


def passage_wire(passage: Passage) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked chunk with its row."""

    ranked: Ranked
    chunk: DocumentChunk


def hits_of(ranked: Sequence[Ranked], library_ids: Iterable[UUID]) -> list[Hit]:
    """In the order given; rows that are gone meanwhile, or not of these libraries, are left out.
    One query."""
    rows = DocumentChunk.objects.filter(library__in=list(library_ids))
    rows = rows.select_related("document").defer(
        "vector", "search", "document__text", "document__metadata", "document__pages"
    )
    by_id = rows.in_bulk([each.id for each in ranked])
    return [Hit(each, by_id[each.id]) for each in ranked if each.id in by_id]


def passages_of(hits: Iterable[Hit], *, count: int) -> list[Passage]:
    """At most `count`, best first. One more query if joined chunks have space between them."""
    groups: list[list[Hit]] = []
    for hit in hits:
        group = _neighbours(groups, hit)
        if group is not None:
            group.append(hit)
        elif len(groups) == count:
            break
        else:
            groups.append([hit])
    contents = _contents(groups)
    return [
        _passage(number, group, content)
        for number, (group, content) in enumerate(zip(groups, contents, strict=True), 1)
    ]


def _neighbours(groups: Iterable[list[Hit]], hit: Hit) -> list[Hit] | None:
    """The passage this chunk continues, before or behind."""
    for group in groups:
        orders = [other.chunk.order for other in group]
        is_near = min(orders) - 1 <= hit.chunk.order <= max(orders) + 1
        is_same = group[0].chunk.document_id == hit.chunk.document_id
        is_same = is_same and group[0].chunk.embedding_model_id == hit.chunk.embedding_model_id
        if is_same and is_near and len(group) < MAX_JOINED:
            return group
    return None


def _passage(number: int, group: Sequence[Hit], content: str) -> Passage:
    best, document = group[0], group[0].chunk.document
    chunks = sorted((hit.chunk for hit in group), key=lambda chunk: chunk.order)
    return Passage(
        number=number,
        chunk_ids=tuple(chunk.pk for chunk in chunks),
        content=content,
        document=PassageDocument(document.pk, document.name, document.path),
        library_id=best.chunk.library_id,
        start=chunks[0].start,
        end=chunks[-1].end,
        page=chunks[0].page,
        heading=best.chunk.heading,
        score=best.ranked.score,
        relevance=max(hit.ranked.relevance for hit in group),
        text_rank=best.ranked.text_rank,
        vector_rank=best.ranked.vector_rank,
    )


def _contents(groups: Sequence[Sequence[Hit]]) -> list[str]:
    """What stands between two chunks that do not touch (white space) is read from the document."""
    sorted_groups = [sorted((h.chunk for h in group), key=lambda c: c.order) for group in groups]
    gaps = {
        (before.document_id, before.end, after.start): ""
        for chunks in sorted_groups
        for before, after in pairwise(chunks)
        if after.start > before.end
    }
    known = _read(gaps)
    return [_joined(chunks, known) for chunks in sorted_groups]


def _joined(chunks: Sequence[DocumentChunk], gaps: Mapping[tuple[UUID, int, int], str]) -> str:
    text, end = chunks[0].content, chunks[0].end
    for chunk in chunks[1:]:
        text += gaps.get((chunk.document_id, end, chunk.start), "")
        text += chunk.content[max(0, end - chunk.start) :]
        end = max(end, chunk.end)
    return text


def _read(gaps: Iterable[tuple[UUID, int, int]]) -> dict[tuple[UUID, int, int], str]:
    """One query a gap: joined passages are few."""
    found = {}
    for document_id, start, end in gaps:
        part = Func(
            F("text"),
            Value(start + 1, output_field=IntegerField()),
            Value(end - start, output_field=IntegerField()),
            function="substr",
            output_field=TextField(),
        )
        rows = Document.objects.filter(pk=document_id).values_list(part, flat=True)
        found[document_id, start, end] = rows.first() or ""
    return found
