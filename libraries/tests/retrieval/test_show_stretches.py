"""Of what is found, the sentences that matter are shown, whole and with what belongs to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amber.lib.ids import new_id
from amber.lib.search.languages import language_of
from amber.lib.search.stems import stem
from libraries.models import Document
from libraries.retrieval.passages import ChunkHit, ChunkText, _passage
from libraries.retrieval.ranking import RankedChunk
from libraries.retrieval.stretches import (
    NEARNESS,
    FoundChunk,
    FoundRun,
    Stretch,
    _score_words,
    choose_stretches,
)
from libraries.tests.ledger import new_library
from libraries.tests.shelf import random_vectors, search, shelve

FILLER = "Rain fell on the meadow and the river rose by the hour while nobody looked. "
WEIGHTS = {"pump": 2.0, "greas": 3.0, "valv": 2.5}
DOCUMENT, LIBRARY = new_id(), new_id()
PUMP = "The pump is greased every month. "


def run(text: str, *, rank: int = 0, strength: float = 1.0, is_near: bool = False) -> FoundRun:
    return FoundRun(text, [FoundChunk(0, len(text), rank, strength, is_near)])


def shown(*runs: FoundRun, count: int = 5, weights: dict[str, float] = WEIGHTS) -> list[str]:
    found = choose_stretches(runs, weights, count=count)
    return [runs[each.run].text[each.start : each.end] for each in found]


def test_the_sentence_with_the_words_is_shown_with_those_that_it_reaches():
    far = FILLER * 9
    (text,) = shown(run(f"{far}{PUMP}It hums. {far}"))
    assert PUMP.strip() in text
    assert "It hums." in text
    assert len(text) < len(far)


def test_two_places_of_one_chunk_are_two_stretches():
    far = FILLER * 15
    assert len(shown(run(f"{PUMP}{far}{PUMP}"))) == 2


def test_sentences_with_few_between_them_are_one_stretch():
    (text,) = shown(run(f"{PUMP}{FILLER}{PUMP}"))
    assert text == f"{PUMP}{FILLER}{PUMP}".strip()


def test_a_weaker_chunk_shows_one_sentence_and_only_where_there_is_space():
    best, weak = (
        run(PUMP),
        run(f"{FILLER * 7}The valve is open. {FILLER * 7}", rank=1, strength=0.3),
    )
    assert shown(best, weak) == [PUMP.strip(), "The valve is open."]
    assert shown(best, weak, count=1) == [PUMP.strip()]


def test_what_is_not_near_to_the_best_is_marked_as_there_for_the_space():
    weak = run(f"{FILLER * 7}The valve is open. {FILLER * 7}", rank=1, strength=0.3)
    near = run(FILLER, rank=2, strength=0.9, is_near=True)
    far = run(FILLER, rank=3, strength=0.5, is_near=True)
    found = choose_stretches([run(PUMP), weak, near, far], WEIGHTS, count=5)
    assert [each.is_filler for each in found] == [False, True, False, True]


def test_the_order_is_that_of_the_chunks_and_the_first_is_always_shown():
    first, second = run(f"{FILLER}The valve. ", strength=0.2), run(PUMP, rank=1)
    assert shown(first, second)[1] == PUMP.strip()
    assert "valve" in shown(first, second, count=1)[0]


def test_what_is_found_for_its_meaning_is_shown_by_its_strength():
    text = FILLER * 6
    strong = run(text, rank=1, strength=0.9, is_near=True)
    weak = run(text, rank=2, strength=0.2, is_near=True)
    assert [len(each) for each in shown(run(PUMP), strong, weak)] == [
        len(PUMP.strip()),
        len(text.strip()),
        len(FILLER.strip()),
    ]


def test_without_any_of_the_words_chunks_keep_their_order():
    first, second = run(FILLER * 3), run(PUMP, rank=1)
    assert shown(first, second, weights={}) == [FILLER.strip(), PUMP.strip()]


@pytest.mark.parametrize(
    "belonging",
    [
        "## Care\n\nThe pump is greased every month.",
        "Grease the pump like this:\n\n```\npump.open()\npump.close()\n```",
        "- The pump.\n- Its door.\n- Its lid.",
        "| part | when |\n|---|---|\n| pump | May |\n| lid | June |",
    ],
)
def test_what_belongs_together_is_not_torn(belonging):
    (text,) = shown(run(f"{FILLER * 8}\n\n{belonging}\n\n{FILLER * 8}"))
    assert belonging in text
    assert len(text) < len(FILLER) * 12


def test_words_are_found_in_other_forms_and_languages():
    text = "Das Dach ist grün. " * 9 + "Die Häuser wurden 1931 gebaut, und der Bürgermeister kam. "
    (found,) = shown(run(text), weights={"haus": 1.0})
    assert "Die Häuser" in found


@given(
    st.lists(st.tuples(st.text(min_size=1), st.floats(0, 1), st.booleans()), max_size=5),
    st.integers(min_value=1, max_value=4),
)
def test_any_texts_have_stretches_within_them(texts, count):
    runs = [
        run(text, rank=rank, strength=strength, is_near=is_near)
        for rank, (text, strength, is_near) in enumerate(texts)
    ]
    found = choose_stretches(runs, {"a": 1.0, "0": 0.5}, count=count)
    assert len(found) <= count
    assert bool(found) == bool(runs)
    assert [each.rank for each in found] == sorted(each.rank for each in found)
    assert all(0 <= each.start <= each.end <= len(runs[each.run].text) for each in found)


WORDS = [
    "the",
    "pump",
    "its",
    "valve",
    "is",
    "greased",
    "in",
    "spring",
    "with",
    "Häuser",
    "健康",
    "c++",
]
SENTENCES = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=9)


@given(st.lists(SENTENCES, max_size=4))
def test_runs_that_are_scored_at_once_score_what_each_sentence_does_alone(runs):
    weights = {"pump": 2.0, "valv": 1.5, "greas": 3.0, "the": 0.3, "健康": 1.0}
    lengths = [max(len(sentence), 1) for sentences in runs for sentence in sentences]
    expected = []
    for sentences in runs:
        language = language_of(word for sentence in sentences for word in sentence)
        for at in range(len(sentences)):
            expected.append(0.0)
            for form, weight in weights.items():
                rest = 1.0
                for other, sentence in enumerate(sentences):
                    reach = abs(at - other)
                    if reach < len(NEARNESS) and form in {
                        stem(word, language) for word in sentence
                    }:
                        relative = max(len(sentence), 1) / (sum(lengths) / len(lengths))
                        rest *= 1 - NEARNESS[reach] / (1 + 1.2 * (0.25 + 0.75 * relative))
                expected[-1] += weight * (1 - rest)
    assert [*_score_words(runs, weights)] == pytest.approx(expected)


@pytest.mark.django_db
def test_weaker_passages_are_shorter_and_exact(alice):
    library = new_library(alice)
    best = "The gasket of the pump is greased in spring with oil from the green can."
    weak = f"{FILLER * 7}The pump stands idle. {FILLER * 7}".strip()
    shelve(library, best, name="best")
    shelve(library, weak, name="weak", pages=[0, 10, len(FILLER) * 7])
    for n in range(12):
        shelve(library, f"{FILLER} Number {n}.", name=f"filler-{n}")
    result = search([library], "When is the gasket of the pump greased?", k=2)
    first, second = result.passages
    assert result.relevant == [first]
    assert first.content == best
    assert second.content == "The pump stands idle."
    text = Document.objects.get(name="weak").text
    assert text is not None
    assert text[second.start : second.end] == second.content
    assert second.page == 3


@pytest.mark.django_db
def test_what_only_vectors_find_is_shown_whole(alice):
    library = new_library(alice)
    long = (FILLER * 4).strip()
    vectors = random_vectors(12, library.embedding_model.dimensions)
    for n in range(12):
        shelve(library, f"{long} {n}", vectors=vectors[n : n + 1])
    found = search(
        [library], "xylophone", k=3, query_vectors={library.embedding_model_id: vectors[5]}
    )
    assert found.passages[0].content == f"{long} 5"
    assert len(found.passages) == 3


def found(*, order: int, start: int) -> ChunkHit:
    """A chunk of ten characters."""
    chunk = ChunkText(
        new_id(),
        DOCUMENT,
        LIBRARY,
        LIBRARY,
        order,
        start,
        start + 10,
        None,
        None,
        "",
        "a",
        None,
        (),
    )
    return ChunkHit(RankedChunk(chunk.id, 1.0, 1.0, 1.0, 1, None), chunk)


def test_what_lies_between_two_chunks_that_are_joined_belongs_to_the_first():
    """No passage is without a chunk."""
    best, before = found(order=1, start=100), found(order=0, start=0)
    passage = _passage(1, [best, before], FoundRun("x" * 110, []), Stretch(0, 40, 60, 0))
    assert (passage.start, passage.end, passage.chunk_ids) == (40, 60, (before.chunk.id,))


def test_a_stretch_may_begin_before_the_only_chunk_that_it_has_a_part_of():
    best, before = found(order=1, start=100), found(order=0, start=0)
    passage = _passage(1, [best, before], FoundRun("x" * 110, []), Stretch(0, 90, 105, 0))
    assert passage.chunk_ids == (best.chunk.id,)
