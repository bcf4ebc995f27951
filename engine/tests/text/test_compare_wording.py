"""Test whether a text is made of words that were said."""

import pytest

from engine.text.wording import are_worded_in, unsaid_words

TYPED = ["Is the North Pump in Ulm, order AB-12?", "我养了一只猫", "See https://a.example/x?y=1."]


@pytest.mark.parametrize(
    "text",
    ["north pump", "Ulm", "ＡＢ-12", "12", "一只猫", "https://a.example/x?y=1", "", "ulm pump 12"],
)
def test_what_was_said_is_found(text):
    assert are_worded_in([text], TYPED)


@pytest.mark.parametrize(
    "text",
    [
        "south pump",
        "AB-13",
        "120",
        "一只狗",
        "猫一",
        "https://a.example/x?y=2",
        "https://a.example/ulm",
        "ulm.....!!!!",
        "....",
    ],
)
def test_what_was_not_said_is_missed(text):
    assert not are_worded_in([text], TYPED)


def test_the_words_that_are_missing_are_told_in_order():
    assert unsaid_words("the red pump of Rome", "a pump", added=frozenset({"the", "of"})) == [
        "red",
        "rome",
    ]
