"""Chunks in the form of words before stems of languages are rewritten, and found all the while."""

import time
from typing import Any

import pytest
from django.db import connection, transaction

from amber.lib.search.stems import WORDS_FORM, rough_stem
from amber.lib.search.words import stored_words
from libraries.chunking.chunk_words import library_word
from libraries.chunking.word_forms import rewrite_next, rewrite_words
from libraries.models import DocumentChunk, Library
from libraries.tests.ledger import new_library
from libraries.tests.shelf import keyword_hits, shelve

pytestmark = pytest.mark.django_db

GERMAN = "Der Imker hat die Häuser der Bienen im Garten des Nachbarn aufgestellt."
RUSSIAN = "Пасечник поставил ульи в саду соседа, и они стоят там до зимы."
CHINESE = "公司于2024年在上海成立，主要生产阀门。"


@pytest.fixture
def library(alice):
    """A library as it was left by a release that knew English endings alone."""
    library = new_library(alice)
    for text in (GERMAN, RUSSIAN, CHINESE):
        shelve(library, text, name="plan")
    for chunk in DocumentChunk.objects.all():
        words = f"{chunk.document.searched_name} {chunk.content}"
        early = {rough_stem(word) for word in stored_words(words)} | {library_word(library.pk)}
        DocumentChunk.objects.filter(pk=chunk.pk).update(
            search=" ".join(f"'{word}':1" for word in early)
        )
    Library.objects.filter(pk=library.pk).update(words_form=0, languages={})
    library.refresh_from_db()
    return library


def found(library: Any, query: str) -> list[str]:
    library.refresh_from_db()
    hits = keyword_hits(library, query).hits
    return [DocumentChunk.objects.get(pk=hit.id).content for hit in hits]


def test_rewritten_chunks_are_found_by_every_form_of_a_word(library):
    assert found(library, "Haus") == found(library, "улей") == []
    rewrite_words()
    assert found(library, "Haus") == [GERMAN]
    assert found(library, "улей соседи") == [RUSSIAN]
    assert found(library, "阀门") == [CHINESE]


def test_words_as_they_stand_are_found_before_between_and_after(library):
    def all_found() -> bool:
        asked = {"Häuser": GERMAN, "соседа": RUSSIAN, "阀门": CHINESE, "Nachbarn": GERMAN}
        return all(found(library, query) == [text] for query, text in asked.items())

    assert all_found()
    while rewrite_next(library.pk, until=time.monotonic() + 60):
        assert all_found()
    assert all_found()


def test_the_library_is_through_and_knows_its_languages(library):
    rewrite_words()
    library.refresh_from_db()
    assert library.words_form == WORDS_FORM
    assert library.words_cursor is None
    assert library.languages == {"de": 1, "ru": 1, "spaceless": 1}
    assert not rewrite_next(library.pk, until=time.monotonic() + 60)


def test_chunks_with_the_same_words_stay_untouched(library):
    rows = "SELECT content, xmin::text FROM libraries_documentchunk"
    with connection.cursor() as cursor:
        cursor.execute(rows)
        before = dict(cursor.fetchall())
        with transaction.atomic():
            rewrite_words()
        cursor.execute(rows)
        after = dict(cursor.fetchall())
    assert [text for text in before if before[text] != after[text]] == [GERMAN, RUSSIAN]


def test_it_goes_on_where_it_stopped(library):
    assert rewrite_next(library.pk, until=time.monotonic() + 60)
    library.refresh_from_db()
    first = library.words_cursor
    assert first is not None
    assert library.words_form < WORDS_FORM
    assert rewrite_next(library.pk, until=time.monotonic() - 1)
    library.refresh_from_db()
    assert library.words_cursor == first
    rewrite_words()
    library.refresh_from_db()
    assert library.words_form == WORDS_FORM
