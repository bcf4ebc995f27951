"""What of earlier talk matters to a question, and what is no question at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.recall import MIN_RELEVANCE, Candidate, Crowd, Scored, choose, question_of, score
from engine.small_talk import is_small_talk

CROWD = Crowd(count=500, mean=0.1, deviation=0.05)


def words(key: str, *held: str, tokens: int = 100) -> Candidate:
    return Candidate(key, tokens, words=frozenset(held))


def near(key: str, similarity: float) -> Candidate:
    return Candidate(key, 100, similarity=similarity)


def best(*candidates: Candidate, frequencies=None, total=500, crowd=CROWD) -> list[Scored]:
    return score(candidates, frequencies=frequencies or {}, total=total, crowd=crowd)


def test_rare_words_weigh_more_than_frequent_ones():
    frequencies = {"clara": 1, "cat": 3, "name": 400}
    ranked = best(words("a", "name"), words("b", "clara", "cat"), frequencies=frequencies)
    assert [one.candidate.key for one in ranked] == ["b", "a"]
    assert ranked[0].relevance > 0.9
    assert ranked[1].relevance < MIN_RELEVANCE


def test_a_question_about_something_never_mentioned_finds_nothing():
    frequencies = {"tokio": 0, "scheduler": 0, "runtime": 30}
    (only,) = best(words("a", "runtime"), frequencies=frequencies)
    assert only.relevance < MIN_RELEVANCE


def test_a_similarity_counts_by_how_far_it_stands_out():
    ranked = best(near("far out", 0.4), near("in the crowd", 0.15))
    assert [one.candidate.key for one in ranked] == ["far out", "in the crowd"]
    assert ranked[0].relevance == 1.0
    assert ranked[1].relevance == 0.0


def test_the_same_similarity_tells_nothing_where_all_are_as_high():
    (only,) = best(near("a", 0.8), crowd=Crowd(500, 0.78, 0.05))
    assert only.relevance < MIN_RELEVANCE


def test_few_blocks_are_judged_by_the_similarity_itself():
    ranked = best(near("a", 0.7), near("b", 0.2), crowd=Crowd(2, 0.45, 0.25))
    assert [one.relevance >= MIN_RELEVANCE for one in ranked] == [True, False]


def test_both_sides_together_are_worth_more_than_one():
    both = Candidate("both", 100, similarity=0.3, words=frozenset({"clara"}))
    ranked = best(words("one", "clara"), both, frequencies={"clara": 2, "zebra": 2})
    assert ranked[0].candidate.key == "both"
    assert ranked[0].relevance > ranked[1].relevance


@given(
    st.lists(
        st.builds(
            Candidate,
            st.uuids().map(str),
            st.integers(0, 500),
            st.none() | st.floats(-1, 1),
            st.frozensets(st.sampled_from("abc")),
        ),
        max_size=30,
    ),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 50)),
    st.integers(0, 1_000),
)
def test_chosen_fit_the_budget_and_are_relevant(candidates, frequencies, limit):
    scored = score(candidates, frequencies=frequencies, total=50, crowd=CROWD)
    taken, left_out = choose(scored, limit_tokens=limit)
    assert all(0 <= one.relevance <= 1 for one in scored)
    assert sum(one.candidate.tokens for one in taken) <= limit
    assert all(one.relevance >= MIN_RELEVANCE for one in [*taken, *left_out])


def test_a_short_question_is_read_with_those_before_it():
    asked = ["What was the revenue of Acme in 2022?", "And in 2023?"]
    assert question_of(asked) == "What was the revenue of Acme in 2022?\nAnd in 2023?"
    chinese = ["北京分公司2022年的营业收入是多少？", "那2023年呢？"]
    assert question_of(chinese) == "\n".join(chinese)


def test_a_whole_question_stands_alone():
    whole = "How does the billing service retry failed payments overnight?"
    assert question_of(["Tell me about zebras.", whole]) == whole


def test_looking_back_ends():
    assert question_of(["one", "two", "three", "four"]) == "two\nthree\nfour"


@pytest.mark.parametrize(
    "text", ["Hello!", "ok, thanks 👍", "你好！", "好的，谢谢", "How are you?", "", "👋"]
)
def test_small_talk_asks_nothing(text):
    assert is_small_talk(text)
    assert question_of(["What is the revenue of Acme?", text]) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Hello, what is the revenue?",
        "And in 2023?",
        "健康",
        "2024",
        "C++",
        "thanks for Clara's cat",
    ],
)
def test_whatever_names_something_is_no_small_talk(text):
    assert not is_small_talk(text)


def test_nobody_asked():
    assert question_of([]) == ""
