"""Chunks by COPY: what is written is what an ORM reads, and wrong vectors are refused."""

from typing import Any

import numpy as np
import orjson
import pytest
from django.db import IntegrityError, connection, transaction

from amber.lib.ids import new_id
from libraries.chunking.chunk_words import (
    MAX_COUNTED,
    chunk_words,
    library_word,
    occurrences_of,
    tsvector_bytes,
    words_asked,
)
from libraries.chunking.chunk_writer import ChunkRow, write_chunks
from libraries.embedding.halfvec import halfvec_text
from libraries.models import Document, DocumentChunk
from libraries.tests.ledger import new_library, new_model

pytestmark = pytest.mark.django_db

CONTENT = "Ölpumpe AB-1234/5.6: foo_bar.baz() in C++ 健康的人，2024年\n\U0001f600 it''s \\ 'quoted'"


def test_the_text_of_a_vector_has_all_its_digits():
    vector = np.random.default_rng(1).normal(size=(2, 64)).astype(np.float32)[1] / 1e4
    read = np.array(orjson.loads(halfvec_text(vector)), np.float32)
    assert (read == vector).all()


@pytest.fixture
def library(alice):
    return new_library(alice)


def row_of(library: Any, **fields: Any) -> ChunkRow:
    document = Document.objects.create(
        organization=library.organization, library=library, name="a.txt"
    )
    vector = np.zeros(library.embedding_model.dimensions, np.float32)
    vector[3] = 1
    known = {
        "organization_id": library.organization_id,
        "document_id": document.pk,
        "library_id": library.pk,
        "embedding_model_id": library.embedding_model_id,
        "content": CONTENT,
        "order": 0,
        "start": 5,
        "end": 5 + len(CONTENT),
        "page": None,
        "heading": None,
        "tokens": 30,
        "vector": vector,
    }
    return ChunkRow(**known | fields)


def matches(chunk: DocumentChunk, query: str) -> bool:
    rows = DocumentChunk.objects.filter(pk=chunk.pk)
    return all(
        rows.filter(search__matches=each.literal).exists() for each in words_asked(query).words
    )


def test_rows_are_as_they_were_given(library):
    rows = [row_of(library), row_of(library, order=7, page=2, heading="Öl > 健康", tokens=1)]
    assert write_chunks(iter(rows)) == {"en": 2}
    for given, kept in zip(rows, DocumentChunk.objects.order_by("order"), strict=True):
        for name in ("content", "order", "start", "end", "page", "heading", "tokens"):
            assert getattr(kept, name) == getattr(given, name)
        for name in ("organization_id", "document_id", "library_id", "embedding_model_id"):
            assert getattr(kept, name) == getattr(given, name)
        assert kept.vectorized
        assert kept.vector == given.vector.tolist()
        assert kept.dimensions == 64
        kept.full_clean(exclude=["vector"])


def test_no_rows_are_no_error():
    assert write_chunks([]) == {}


@pytest.mark.parametrize(
    "query",
    ["健康", "2024年", "C++", "foo_bar.baz()", "foo_bar", "AB-1234/5.6", "Ölpumpe", "pumps"],
)
def test_words_names_and_headings_are_found(library, query):
    write_chunks([row_of(library, heading="Pump")])
    assert matches(DocumentChunk.objects.get(), query)


def test_the_name_of_the_document_finds_it(library):
    write_chunks([row_of(library, name="Quarterly-Report.pdf")])
    assert matches(DocumentChunk.objects.get(), "quarterly report")
    assert not matches(DocumentChunk.objects.get(), "monthly report")


def test_a_lone_character_is_found_wherever_it_stands(library):
    write_chunks([row_of(library)])
    assert matches(DocumentChunk.objects.get(), "健")
    assert not matches(DocumentChunk.objects.get(), "猫")


def test_the_word_of_the_library_is_no_word_of_a_text(library):
    assert library_word(library.pk) in chunk_words(library.pk, "a").counted
    assert library_word(library.pk) not in chunk_words(new_id(), library_word(library.pk)).counted


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, MAX_COUNTED - 1, MAX_COUNTED, MAX_COUNTED + 9])
def test_occurrences_are_told_by_the_rank_of_one_word(library, count):
    with connection.cursor() as cursor:
        write_chunks([row_of(library, content="valve " * count + "rest")])
        cursor.execute("SELECT ts_rank('{1,1,1,1}', search, 'valv') FROM libraries_documentchunk")
        (rank,) = cursor.fetchone()
    assert occurrences_of(rank) == min(count, MAX_COUNTED)


@pytest.mark.parametrize("dimensions", [1, 63, 65])
def test_a_vector_of_another_size_is_refused(library, dimensions):
    vector = np.ones(dimensions, np.float32)
    with pytest.raises(IntegrityError, match="chunk_vector_fits_model"), transaction.atomic():
        write_chunks([row_of(library, vector=vector)])
    assert not DocumentChunk.objects.exists()


def test_a_model_with_vectors_keeps_its_size(library):
    write_chunks([row_of(library)])
    model = library.embedding_model
    model.dimensions = 65
    with pytest.raises(IntegrityError, match="chunk_vector_fits_model"), transaction.atomic():
        model.save()
    free = new_model()
    free.dimensions = 65
    free.save()


def test_the_binary_form_is_what_postgres_sends(library):
    counted = chunk_words(library.pk, CONTENT, "valve valve")
    with connection.cursor() as cursor:
        write_chunks([row_of(library, content=CONTENT, heading="valve valve")])
        cursor.execute("SELECT tsvectorsend(search) FROM libraries_documentchunk")
        (sent,) = cursor.fetchone()
    assert len(sent) == len(tsvector_bytes(counted.counted))
