"""Fusion: a weak retriever must not drag a strong one, whichever is the weak one."""

import math
import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.relevance.measures import ramp
from libraries.retrieval.ranking import (
    LEXICAL_WEIGHT,
    MEANING_WEIGHT,
    KeywordResult,
    TextHit,
    VectorResult,
    agreement,
    decisiveness,
    fuse,
    weigh,
)


def pk(number: int) -> UUID:
    return UUID(int=number + 1)


def by_words(*scores: float, coverage: float = 0.6, first: int = 0) -> KeywordResult:
    """Chunks first, first + 1, …"""
    hits = [TextHit(pk(first + n), score, coverage) for n, score in enumerate(scores)]
    return KeywordResult(hits)


def by_vectors(
    *numbers: int, step: float = 0.02, top: float = 0.8, **fields: object
) -> VectorResult:
    """These chunks, each a step less similar; all others at 0.1, give or take 0.1."""
    hits = [(pk(n), top - step * place) for place, n in enumerate(numbers)]
    others = {pk(n): dict(hits).get(pk(n), 0.1) for n in range(30)}
    known = {"count": 1_000, "mean": 0.1, "deviation": 0.1, "others": others} | fields
    return VectorResult(hits, **known)  # type: ignore[arg-type]


def order(text: KeywordResult, *vectors: VectorResult) -> list[int]:
    return [hit.id.int - 1 for hit in fuse(text, vectors)]


FLAT = [10.0 - n / 10 for n in range(10)]
SHARP = [10.0, 3.0, 2.5, 2.0]

# -- Trust ---------------------------------------------------------------------------------------


def test_two_good_arms_that_agree_count_fully():
    weights = weigh(by_words(*FLAT), [by_vectors(*range(10))])
    assert weights.text == pytest.approx(1)
    assert weights.vectors[0] == pytest.approx(MEANING_WEIGHT)


def test_vectors_that_lift_nothing_do_not_count_beside_words_that_found_something():
    weights = weigh(by_words(*FLAT), [by_vectors(*range(20, 30))])
    assert weights.vectors == (0.0,)
    assert order(by_words(*FLAT), by_vectors(*range(20, 30)))[:10] == list(range(10))


def test_words_that_found_little_do_not_speak_against_vectors():
    weak = by_words(*FLAT, coverage=0.05)
    weights = weigh(weak, [by_vectors(*range(20, 30))])
    assert weights.vectors[0] > 0.9 > weights.text
    assert order(weak, by_vectors(*range(20, 30)))[0] == 20


def test_a_sharp_find_by_words_decides_alone():
    """A part number: the vectors prefer its neighbours."""
    text = by_words(*SHARP, coverage=1.0)
    assert decisiveness(text) == pytest.approx(0.7)
    assert order(text, by_vectors(5, 6, 7, 0))[0] == 0


def test_where_nothing_is_decided_both_say_something():
    text, vectors = by_words(*FLAT), by_vectors(3, 1, 0, 2, 4, 5, 11, 12)
    found = order(text, vectors)
    assert set(found[:5]) == {0, 1, 2, 3, 4}
    assert found != order(text)
    assert {11, 12} <= set(found)


def test_a_survey_that_saw_nothing_in_the_vectors_silences_them():
    weak = by_words(*FLAT, coverage=0.05)
    assert weigh(weak, [by_vectors(*range(20, 30), lift=0.0)]).vectors == (0.0,)
    assert weigh(weak, [by_vectors(*range(20, 30), lift=0.4)]).vectors[0] == pytest.approx(
        MEANING_WEIGHT / 2
    )
    assert weigh(weak, [by_vectors(*range(20, 30), lift=None)]).vectors[0] == pytest.approx(
        MEANING_WEIGHT
    )


def test_a_lexical_embedder_counts_for_little():
    weights = weigh(by_words(*FLAT), [by_vectors(*range(10), is_lexical=True)])
    assert weights.vectors[0] == pytest.approx(LEXICAL_WEIGHT)


def test_without_words_vectors_alone_are_the_ranking():
    assert order(KeywordResult(), by_vectors(4, 2, 9)) == [4, 2, 9]
    assert order(KeywordResult(), by_vectors(4, 2, 9, lift=0.0)) == [4, 2, 9]


def test_without_vectors_words_alone_are_the_ranking():
    assert order(by_words(*SHARP)) == [0, 1, 2, 3]
    assert order(by_words(*SHARP), VectorResult()) == [0, 1, 2, 3]


def test_nothing_found_is_nothing():
    assert fuse(KeywordResult(), []) == []
    assert fuse(KeywordResult(), [VectorResult()]) == []


def test_each_models_vectors_are_trusted_for_themselves():
    """Two models: one agrees with the words, one means nothing."""
    good = by_vectors(*range(5), others={pk(n): 0.8 - 0.02 * n for n in range(5)})
    bad = by_vectors(*range(20, 30), others={pk(n): 0.1 for n in range(5, 10)})
    first, second = weigh(by_words(*FLAT), [good, bad]).vectors
    assert first > 0.9
    assert second == 0.0


# -- Agreement of vectors without meaning is chance ----------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_random_vectors_are_not_trusted(seed):
    dice = random.Random(seed)
    near = {pk(n): dice.gauss(0, 1) for n in range(1_000)}
    hits = sorted(near.items(), key=lambda pair: -pair[1])[:100]
    scores = [10 * math.exp(-n / 10) for n in range(60)]
    retriever = VectorResult(hits, 1_000, 0.0, 1.0, near)
    assert agreement(by_words(*scores), retriever) < 0.35
    assert order(by_words(*scores), retriever)[0] == 0


# -- Scores and relevance --------------------------------------------------------------------------


def test_first_everywhere_scores_one():
    best = fuse(by_words(*FLAT), [by_vectors(*range(10))])[0]
    assert best.score == pytest.approx(1)
    assert (best.text_rank, best.vector_rank) == (1, 1)


def test_ranks_say_which_arm_found_a_hit():
    found = {hit.id: hit for hit in fuse(by_words(*FLAT), [by_vectors(3, 15)])}
    assert (found[pk(3)].text_rank, found[pk(3)].vector_rank) == (4, 1)
    assert (found[pk(15)].text_rank, found[pk(15)].vector_rank) == (None, 2)
    assert (found[pk(0)].text_rank, found[pk(0)].vector_rank) == (1, None)


@pytest.mark.parametrize(
    ("text", "vectors", "relevance"),
    [
        (by_words(1.0, coverage=0.9), [], 0.9),
        (KeywordResult(), [by_vectors(0, top=0.8)], 1.0),
        (KeywordResult(), [by_vectors(0, top=0.6)], 0.51),
        (KeywordResult(), [by_vectors(0, top=0.3)], 0.0),
        (KeywordResult(), [by_vectors(0, top=0.8, lift=0.0)], 0.0),
        (KeywordResult(), [by_vectors(0, top=0.8, is_lexical=True)], 0.2),
        (KeywordResult(), [by_vectors(0, top=0.8, deviation=0.0)], 0.0),
        (KeywordResult(), [by_vectors(0, top=0.55, count=5)], 0.5),
    ],
    ids=["words", "far out", "half out", "in the crowd", "random", "lexical", "all alike", "few"],
)
def test_relevance_is_what_the_better_arm_says(text, vectors, relevance):
    assert fuse(text, vectors)[0].relevance == pytest.approx(relevance, abs=0.01)


# -- Properties ------------------------------------------------------------------------------------

ids = st.integers(0, 40)
keyword_results = st.builds(
    lambda numbers, scores, coverage: KeywordResult(
        [
            TextHit(pk(n), score, coverage)
            for n, score in zip(numbers, sorted(scores, reverse=True), strict=False)
        ]
    ),
    st.lists(ids, unique=True, max_size=30),
    st.lists(st.floats(0.01, 50), min_size=30, max_size=30),
    st.floats(0, 1),
)
vector_results = st.builds(
    lambda numbers, near, mean, deviation, lift, lexical: VectorResult(
        [(pk(n), s) for n, s in zip(numbers, sorted(near, reverse=True), strict=False)],
        40,
        mean,
        deviation,
        {pk(n): s for n, s in zip(numbers[::-1], near, strict=False)},
        lift,
        lexical,
    ),
    st.lists(ids, unique=True, max_size=30),
    st.lists(st.floats(-1, 1), min_size=30, max_size=30),
    st.floats(-1, 1),
    st.floats(0, 1),
    st.none() | st.floats(-0.2, 1.1),
    st.booleans(),
)


@given(keyword_results, st.lists(vector_results, max_size=2))
def test_every_hit_is_ranked_once_within_bounds(text, vectors):
    ranked = fuse(text, vectors)
    expected = {hit.id for hit in text.hits} | {
        hit for retriever in vectors for hit, _ in retriever.hits
    }
    assert len(ranked) == len(expected)
    assert {hit.id for hit in ranked} == expected
    assert all(hit.score >= 0 and 0 <= hit.relevance <= 1 for hit in ranked)
    assert [hit.score for hit in ranked] == sorted((h.score for h in ranked), reverse=True)
    assert fuse(text, vectors) == ranked


@given(keyword_results, vector_results)
def test_weights_lie_between_nothing_and_all(text, vectors):
    weights = weigh(text, [vectors])
    assert 0 <= weights.text <= 1
    assert all(0 <= weight <= MEANING_WEIGHT for weight in weights.vectors)
    assert weights.text + sum(weights.vectors) > 0


@given(keyword_results)
def test_words_alone_keep_their_order(text):
    assert [hit.id for hit in fuse(text, [])] == [hit.id for hit in text.hits]


@pytest.mark.parametrize(
    ("value", "expected"), [(-1, 0), (0.2, 0), (0.3, 0.25), (0.6, 1), (9, 1)], ids=str
)
def test_ramp(value, expected):
    assert ramp(value, 0.2, 0.6) == pytest.approx(expected)
