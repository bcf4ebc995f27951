"""Test the shared relevance model: BM25, fusion, and what a gate asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.relevance.bm25 import K1, score
from engine.relevance.fusion import Spread, reciprocal_ranks
from engine.relevance.gates import Evidence, Gate, QuestionWords
from engine.relevance.measures import idf

counts = st.integers(0, 1_000)
lengths = st.floats(1, 1_000)
values = st.floats(-1e3, 1e3)
words = st.sampled_from("abcdef")


def test_a_score_is_the_formula():
    weights = {"clara": 2.0, "cat": 1.0}
    expected = 2.0 * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 8 / 4))
    assert score(weights, {"clara": 1, "dog": 3}, length=8, mean_length=4) == pytest.approx(
        expected
    )


def of_one_word(occurrences, length, mean):
    return score({"cat": 1.0}, {"cat": occurrences}, length=length, mean_length=mean)


@given(counts, lengths, lengths)
def test_occurrences_saturate(occurrences, length, mean):
    one = of_one_word(occurrences, length, mean)
    assert 0 <= one < K1 + 1 or occurrences == 0
    assert of_one_word(occurrences + 1, length, mean) > one


@given(st.integers(1, 100), lengths, lengths, lengths)
def test_of_two_texts_with_the_same_words_the_shorter_one_is_worth_more(tf, one, other, mean):
    short, long = sorted((one, other))
    assert of_one_word(tf, short, mean) >= of_one_word(tf, long, mean)


@given(counts, st.integers(1, 1_000))
def test_a_rarer_word_weighs_more(count, total):
    assert 0 < idf(count + 1, total + 1) <= idf(count, total + 1)


@given(st.lists(values, min_size=1), st.integers(0, 50))
def test_zeros_that_were_not_handed_over_are_measured(some, zeros):
    told = Spread.of(some, zeros=zeros)
    whole = Spread.of([*some, *[0.0] * zeros])
    assert told.count == whole.count
    assert told.mean == pytest.approx(whole.mean)
    assert told.deviation == pytest.approx(whole.deviation, abs=1e-6)


def test_the_spread_of_nothing_is_nothing():
    assert Spread.of([]) == Spread(0, 0.0, 0.0)


@given(st.lists(st.integers(), unique=True, min_size=1), st.floats(0, 100), st.floats(0.1, 5))
def test_fused_with_itself_or_with_nothing_a_ranking_stays(ranking, k, weight):
    twice = reciprocal_ranks([(ranking, 1.0), (ranking, weight), ([], 9.0)], k=k)
    assert sorted(twice, key=lambda key: -twice[key]) == ranking


evidence = st.builds(Evidence, st.floats(0, 1), st.floats(-2, 9))
gates = st.builds(Gate, st.floats(0, 1), st.floats(-2, 9))


@given(gates, evidence)
def test_a_gate_asks_for_enough_of_each(gate, shown):
    assert Gate(shown.coverage, shown.margin).lets_in(shown)
    if gate.lets_in(shown):
        assert gate.lets_in(Evidence(shown.coverage + 0.1, shown.margin + 1))
    assert not Gate(margin=shown.margin + 1).lets_in(shown)
    assert not Gate(coverage=shown.coverage + 0.1, margin=-9).lets_in(shown)


@given(st.dictionaries(words, st.integers(0, 40), min_size=1), words)
def test_shares_are_of_the_whole_question(found, word):
    question = QuestionWords(found, 40)
    whole = sum(map(question.weight, found))
    assert question.share_of(whole) == pytest.approx(1.0)
    assert question.share_of(0) == 0
    assert 0 <= question.share_known() <= 1
    louder = QuestionWords(found, 40, emphasis={word: 2.0})
    if found.get(word):
        assert louder.share_known() >= question.share_known() - 1e-9


def test_a_word_that_nobody_said_speaks_against_what_was_found():
    known = QuestionWords({"cat": 3, "kernel": 0, "内核": 0}, 100, absent=0.5, absent_pair=0.1)
    weight = idf(3, 100)
    expected = weight / (weight + 0.6 * idf(1, 100))
    assert known.share_known() == pytest.approx(expected)
    assert known.share_of(weight) == pytest.approx(expected)


@given(st.dictionaries(words, st.integers(0, 40), min_size=1))
def test_doubt_weighs_more_against_a_short_question(found):
    sure, doubtful = QuestionWords(found, 40), QuestionWords(found, 40, doubt=1.0)
    assert 0 <= doubtful.share_known() <= sure.share_known()
    assert doubtful.share_of(sum(map(sure.weight, found))) >= 0.5 - 1e-9


def test_doubt_is_one_word_more_of_the_usual_weight():
    one = QuestionWords({"wedding": 60}, 200, doubt=1.0)
    four = QuestionWords(dict.fromkeys("abcd", 5), 200, doubt=1.0)
    assert one.share_known() == pytest.approx(1 / 2)
    assert four.share_known() == pytest.approx(4 / 5)
