"""Of a weaker passage less is shown: the sentences with the question's words, whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraries.models import Document
from libraries.retrieval.stretches import best_stretch, shown_share
from libraries.tests.ledger import new_library
from libraries.tests.shelf import random_vectors, search, shelve

TEXT = (
    "The hall was built in spring. Its roof is made of copper. "
    "The pump is greased every month. Its valve opens to the left. "
    "The door is painted green. Nobody knows the architect."
)
WEIGHTS = {"pump": 2.0, "greas": 3.0, "valv": 2.5}


def stretch(limit_chars: int, text: str = TEXT) -> str:
    start, end = best_stretch(text, WEIGHTS, limit_chars=limit_chars)
    return text[start:end]


def test_the_best_is_shown_whole_and_others_the_less_the_weaker():
    assert shown_share(1) == shown_share(7) == 1
    assert shown_share(0) == shown_share(-1) == 0
    assert shown_share(0.9) > shown_share(0.5) > shown_share(0.2) > 0


@pytest.mark.parametrize(
    ("limit_chars", "shown"),
    [
        (1, "The pump is greased every month."),
        (40, "The pump is greased every month."),
        (70, "The pump is greased every month. Its valve opens to the left."),
        (len(TEXT), TEXT),
    ],
)
def test_the_sentences_with_the_words_are_shown(limit_chars, shown):
    assert stretch(limit_chars) == shown


def test_a_longer_stretch_with_the_same_words_is_better():
    assert "copper" in stretch(95)


def test_without_any_of_the_words_all_is_shown():
    assert best_stretch(TEXT, {"giraff": 1.0}, limit_chars=10) == (0, len(TEXT))
    assert best_stretch(TEXT, {}, limit_chars=10) == (0, len(TEXT))


def test_words_are_found_in_other_forms_and_languages():
    text = "Das Dach ist grün. Die Häuser wurden 1931 gebaut, und der Bürgermeister kam. Es regnet."
    start, end = best_stretch(text, {"haus": 1.0}, limit_chars=30)
    assert text[start:end].startswith("Die Häuser")


@given(st.text(), st.integers(min_value=0, max_value=500))
def test_any_text_has_a_stretch(text, limit_chars):
    start, end = best_stretch(text, {"a": 1.0, "0": 0.5}, limit_chars=limit_chars)
    assert 0 <= start <= end <= len(text)


FILLER = "Rain fell on the meadow and the river rose by the hour while nobody looked."


@pytest.mark.django_db
def test_weaker_passages_are_shorter_and_exact(alice):
    library = new_library(alice)
    best = "The gasket of the pump is greased in spring with oil from the green can."
    weak = f"{FILLER} {FILLER} The pump stands idle. {FILLER} {FILLER}"
    shelve(library, best, name="best")
    shelve(library, weak, name="weak", pages=[0, 10, len(FILLER) * 2 + 2])
    for n in range(12):
        shelve(library, f"{FILLER} Number {n}.", name=f"filler-{n}")
    first, second = search([library], "When is the gasket of the pump greased?", k=2).passages
    assert first.content == best
    assert second.content == "The pump stands idle."
    text = Document.objects.get(name="weak").text
    assert text is not None
    assert text[second.start : second.end] == second.content
    assert second.page == 3


@pytest.mark.django_db
def test_what_only_vectors_find_is_shown_whole(alice):
    library = new_library(alice)
    long = " ".join([FILLER] * 4)
    vectors = random_vectors(12, library.embedding_model.dimensions)
    for n in range(12):
        shelve(library, f"{long} {n}", vectors=vectors[n : n + 1])
    found = search(
        [library], "xylophone", k=3, query_vectors={library.embedding_model_id: vectors[5]}
    )
    assert found.passages[0].content == f"{long} 5"
    assert all(len(passage.content) >= len(long) for passage in found.passages)
