"""What of earlier talk matters to a question, and what is no question at all."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.context.recall import choose, question_of, relevances
from engine.relevance.measures import EARLIER_TALK
from engine.text.small_talk import is_small_talk


@dataclass
class Words:
    held: dict[str, frozenset[str]] = field(default_factory=dict)
    frequencies: dict[str, int] = field(default_factory=dict)
    total: int = 500


@dataclass
class Meaning:
    similarities: dict[str, float] = field(default_factory=dict)
    count: int = 500
    mean: float = 0.1
    deviation: float = 0.05


def held(**keys: str) -> dict[str, frozenset[str]]:
    return {key: frozenset(words.split()) for key, words in keys.items()}


def test_rare_words_weigh_more_than_frequent_ones():
    frequencies = {"clara": 1, "cat": 3, "name": 400}
    relevant = relevances(Words(held(a="name", b="clara cat"), frequencies), Meaning())
    assert list(relevant) == ["b"]
    assert relevant["b"] > 0.9


def test_a_question_about_something_never_mentioned_finds_nothing():
    frequencies = {"tokio": 0, "scheduler": 0, "runtime": 30}
    assert relevances(Words(held(a="runtime"), frequencies), Meaning()) == {}


def test_pairs_of_characters_that_are_no_words_hardly_count():
    frequencies = {"花生": 1, "可以": 0, "以吃": 0, "吃花": 0, "生吗": 0}
    assert list(relevances(Words(held(a="花生"), frequencies), Meaning())) == ["a"]


def test_a_similarity_counts_by_how_far_it_stands_out():
    meaning = Meaning({"far out": 0.4, "in the crowd": 0.15})
    assert relevances(Words(), meaning) == {"far out": 1.0}


def test_the_same_similarity_tells_nothing_where_all_are_as_high():
    assert relevances(Words(), Meaning({"a": 0.8}, mean=0.78)) == {}


def test_texts_that_are_all_the_same_to_the_question_are_not_relevant():
    assert relevances(Words(), Meaning({"a": 0.8}, mean=0.8, deviation=0.0)) == {}


def test_few_texts_are_judged_by_the_similarity_itself():
    meaning = Meaning({"a": 0.7, "b": 0.2}, count=2, mean=0.45, deviation=0.25)
    assert list(relevances(Words(), meaning)) == ["a"]


def test_both_sides_together_are_worth_more_than_one():
    words = Words(held(one="clara", both="clara"), {"clara": 2, "zebra": 2})
    relevant = relevances(words, Meaning({"both": 0.3}))
    assert list(relevant) == ["both", "one"]
    assert relevant["both"] > relevant["one"]


keys = st.sampled_from(["one", "two", "three", "four", "five"])


@given(
    st.dictionaries(keys, st.frozensets(st.sampled_from("abc"))),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 50)),
    st.dictionaries(keys, st.floats(-1, 1)),
    st.dictionaries(keys, st.integers(0, 500)),
    st.integers(0, 1_000),
)
def test_chosen_are_relevant_and_fit_the_budget(words, frequencies, similarities, costs, limit):
    relevant = relevances(Words(words, frequencies, 50), Meaning(similarities))
    assert all(EARLIER_TALK.least <= relevance <= 1 for relevance in relevant.values())
    assert list(relevant.values()) == sorted(relevant.values(), reverse=True)
    taken, left_out = choose(relevant, costs, limit_tokens=limit)
    assert sum(costs[key] for key in taken) <= limit
    assert {*taken, *left_out} == {key for key in relevant if key in costs}


def test_a_short_question_is_read_with_those_before_it():
    asked = ["What was the revenue of Acme in 2022?", "And in 2023?"]
    assert question_of(asked) == "What was the revenue of Acme in 2022?\nAnd in 2023?"
    chinese = ["北京分公司2022年的营业收入是多少？", "那2023年呢？"]
    assert question_of(chinese) == "\n".join(chinese)


def test_a_whole_question_stands_alone():
    whole = "How does the billing service retry failed payments overnight?"
    assert question_of(["Tell me about zebras.", whole]) == whole


@pytest.mark.parametrize(
    ("asked", "is_alone"),
    [
        ("How do I cook risotto with mushrooms?", True),
        ("How do I cook it with mushrooms and rice?", False),
        ("And how about risotto with mushrooms?", False),
        ("Which mushrooms?", False),
    ],
)
def test_a_question_that_points_at_nothing_before_it_stands_alone_sooner(asked, is_alone):
    before = "Write a poem about the moon over Venice."
    assert question_of([before, asked]) == (asked if is_alone else f"{before}\n{asked}")


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
