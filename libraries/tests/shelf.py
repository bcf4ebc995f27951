"""Make documents that are ready to be found, without the pipeline."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from django.db.models import F

from amber.lib.search.languages import add_up
from libraries.chunking.chunk_writer import ChunkRow, write_chunks
from libraries.embedding.store import embed_texts
from libraries.models import Document, Library
from libraries.retrieval import search as retrieval
from libraries.retrieval.keyword_retriever import search_keywords
from libraries.retrieval.scope import Filters, scopes_of
from tests.fixtures.tenants import for_first_library, for_organization

search = for_first_library(retrieval.search)


def keyword_hits(library: Any, query: str, filters: Filters | None = None) -> Any:
    with for_organization(library.organization_id):
        return search_keywords(scopes_of([library], filters), query)


def shelve(library: Any, *chunks: str, vectors: Any = None, **fields: Any) -> Any:
    """A ready document of these chunks, an empty line between each two."""
    text = "\n\n".join(chunks)
    document = Document.objects.create(
        **{"name": "notes.txt"} | fields,
        organization=library.organization,
        library=library,
        text=text,
        stage="ready",
        status="ready",
    )
    if vectors is None:
        model = library.embedding_model
        vectors = embed_texts(chunks, model=model, organization_id=library.organization_id)
    languages = add_up([library.languages, write_chunks(_rows(document, chunks, vectors))])
    Library.objects.filter(pk=library.pk).update(
        chunk_count=F("chunk_count") + len(chunks), languages=languages
    )
    library.refresh_from_db(fields=["chunk_count", "languages"])
    return document


def _rows(document: Any, chunks: Sequence[str], vectors: Any) -> list[ChunkRow]:
    rows, start = [], 0
    for order, (content, vector) in enumerate(zip(chunks, vectors, strict=True)):
        row = ChunkRow(
            organization_id=document.organization_id,
            document_id=document.pk,
            library_id=document.library_id,
            embedding_model_id=document.library.embedding_model_id,
            content=content,
            order=order,
            start=start,
            end=start + len(content),
            page=order + 1,
            heading=None,
            tokens=len(content) // 4 + 1,
            vector=np.asarray(vector),
            name=document.searched_name,
        )
        rows.append(row)
        start = row.end + 2
    return rows


def random_vectors(count: int, dimensions: int, seed: int = 0) -> Any:
    vectors = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
