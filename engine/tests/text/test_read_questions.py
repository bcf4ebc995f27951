"""Test whom a text speaks to, and which questions are about the world."""

import pytest

from engine.text.addressees import called_names
from engine.text.question_forms import is_general


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Hey Marlon! How was the trip?", {"marlon"}),
        ("That's lovely, Odile.", {"odile"}),
        ("Thanks, Odile, I will.", {"thanks", "odile"}),
        ("Odile, did you hear?", {"odile"}),
        ("Danke Jürgen!", {"jürgen"}),
        ("I met Marlon at the station.", set()),
        ("Marlon called, he is late", set()),
        ("User: Odile! How was it?", {"odile"}),
        ("of course!", set()),
        ("", set()),
    ],
)
def test_who_is_called_by_name(text, names):
    assert called_names(text) == names


@pytest.mark.parametrize(
    "question",
    [
        "How do I boil an egg?",
        "What is a mortgage?",
        "Please write a limerick about a tired dentist.",
        "Who is the president of France?",
        "Was ist Quantenverschränkung?",
        "Wie entferne ich Rost von einer Kette?",
        "Сколько калорий в авокадо?",
        "请解释光合作用",
    ],
)
def test_what_has_the_form_of_a_question_about_the_world(question):
    assert is_general(question)


@pytest.mark.parametrize(
    "question",
    [
        "When did Odile move to Ghent?",
        "What was the name of the hotel?",
        "Which database do we use?",
        "Who is my dentist?",
        "What have you told me about the boiler?",
        "Wann hat Jürgen angerufen?",
        "Was war das Problem mit dem Auto?",
        "Что она сказала о поездке?",
        "我们为什么取消了旅行？",
        "The wifi password",
        "",
    ],
)
def test_what_has_not(question):
    assert not is_general(question)
