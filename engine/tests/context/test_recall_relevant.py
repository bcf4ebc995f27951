"""What a turn searches by, what of the findings fits, and what is no question at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.context.recall import choose, question_alone, question_of
from engine.text.small_talk import is_small_talk

keys = st.sampled_from(["one", "two", "three", "four", "five"])


@given(
    st.dictionaries(keys, st.floats(0, 1)),
    st.dictionaries(keys, st.integers(0, 500)),
    st.integers(0, 1_000),
)
def test_what_is_chosen_fits_the_budget(relevant, costs, limit):
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
        ("Why do cats purr?", True),
        ("What causes thunder?", True),
        ("Why do they purr?", False),
    ],
)
def test_a_question_that_points_at_nothing_before_it_stands_alone_sooner(asked, is_alone):
    before = "Write a poem about the moon over Venice."
    assert question_of([before, asked]) == (asked if is_alone else f"{before}\n{asked}")


def test_looking_back_ends():
    assert question_of(["one", "two", "three", "and four"]) == "two\nthree\nand four"


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


def test_a_question_of_whoever_asks_needs_none_before_it():
    asked = ["How does a heat pump work in winter?", "Who is my dentist?"]
    assert question_of(asked) == asked[-1]
    assert question_of([*asked, "And my boss?"]) != "And my boss?"


@pytest.mark.parametrize(
    ("asked", "alone"),
    [
        ("Who is my dentist?", "Who is my dentist?"),
        ("How do I cook risotto with mushrooms?", "How do I cook risotto with mushrooms?"),
        ("And in 2023?", ""),
        ("Why?", ""),
        ("Hello!", ""),
    ],
)
def test_a_question_that_says_enough_is_searched_for_at_once(asked, alone):
    assert question_alone(asked) == alone
