"""Decide which chunks a search looks at: those of the caller's libraries that filters leave.

Everything a stranger may name (ids, paths, metadata) becomes a bound parameter of the ORM here;
the retrievers get ids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from amber.lib.search.languages import add_up
from amber.lib.search.stems import WORDS_FORM
from libraries.models import Document, DocumentChunk, Library
from providers.models import EmbeddingModel


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on documents; empty ones do not count.

    `metadata` means that these keys of the document have these values.
    """

    document_ids: Sequence[UUID] = ()
    path_prefix: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.document_ids or self.path_prefix or self.metadata)


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The chunks of one embedding model in some libraries; `document_ids` None means all documents.

    `chunk_count` is how many there are; with filters they are counted no further than COUNTED.
    `languages` says how the libraries' chunks divide by language. `is_early` means that not all
    hold the present form of words yet.
    """

    model: EmbeddingModel
    library_ids: tuple[UUID, ...]
    document_ids: tuple[UUID, ...] | None
    chunk_count: int
    languages: Mapping[str, int] = field(default_factory=dict)
    is_early: bool = False


COUNTED: Final = 20_000
"""A larger count changes nothing in how a search is made, so counting stops here."""


def scopes_of(libraries: Sequence[Library], filters: Filters | None) -> list[SearchScope]:
    """Return a scope for each embedding model that the libraries use now.

    With filters it costs a query, and one more for each model; else none.
    """
    by_model = sorted(libraries, key=lambda library: library.embedding_model_id)
    groups = [list(group) for _, group in groupby(by_model, key=lambda lib: lib.embedding_model_id)]
    document_ids = _document_ids(libraries, filters) if filters else None
    return [_scope(group, document_ids) for group in groups]


def _document_ids(libraries: Sequence[Library], filters: Filters) -> tuple[UUID, ...]:
    rows = Document.objects.filter(library__in=[library.pk for library in libraries])
    if filters.document_ids:
        rows = rows.filter(pk__in=filters.document_ids)
    if filters.path_prefix:
        rows = rows.filter(path__startswith=filters.path_prefix)
    if filters.metadata:
        rows = rows.filter(metadata__contains=dict(filters.metadata))
    return tuple(rows.values_list("pk", flat=True))


def _scope(libraries: Sequence[Library], document_ids: tuple[UUID, ...] | None) -> SearchScope:
    return SearchScope(
        libraries[0].embedding_model,
        tuple(library.pk for library in libraries),
        document_ids,
        _count_chunks(libraries, document_ids),
        languages=add_up(library.languages for library in libraries),
        is_early=any(library.words_form < WORDS_FORM for library in libraries),
    )


def _count_chunks(libraries: Sequence[Library], document_ids: tuple[UUID, ...] | None) -> int:
    if document_ids is None:
        return sum(library.chunk_count for library in libraries)
    model = libraries[0].embedding_model
    # One parameter, however many documents: a statement has 65,535 at most.
    rows = DocumentChunk.objects.filter(library__in=libraries, embedding_model=model).extra(
        where=["document_id = ANY(%s)"], params=[list(document_ids)]
    )
    return rows[:COUNTED].count()


def condition_of(scope: SearchScope) -> tuple[str, list[Any]]:
    """Return a condition in SQL over the chunks' columns, and its values."""
    sql = "embedding_model_id = %s AND library_id = ANY(%s)"
    values: list[Any] = [scope.model.pk, list(scope.library_ids)]
    if scope.document_ids is not None:
        sql += " AND document_id = ANY(%s)"
        values.append(list(scope.document_ids))
    return sql, values
