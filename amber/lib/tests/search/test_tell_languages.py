"""The language of a text, told by its commonest words, and stems in it."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amber.lib.search.languages import SPACELESS, UNTOLD, common_words, language_of
from amber.lib.search.stems import forms_asked, stem
from amber.lib.search.words import asked_words, stored_words

SETS = Path(__file__).parents[4] / "bench" / "quality" / "languages"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wie viele Menschen leben in der Stadt?", "de"),
        ("¿Cuántas personas viven en la ciudad?", "es"),
        ("Combien de personnes vivent dans la ville ?", "fr"),
        ("Quante persone vivono nella città?", "it"),
        ("Hoeveel mensen wonen er in de stad?", "nl"),
        ("How many people live in the city?", "en"),
        ("Сколько людей живёт в городе?", "ru"),
        ("كم عدد سكان المدينة؟", "ar"),
        ("Πόσοι άνθρωποι ζουν στην πόλη;", "el"),
        ("这座城市有多少人口？ (Berlin)", SPACELESS),
        ("この町の人口は何人ですか", SPACELESS),
        ("Скільки людей живе у місті? Її мешканці їдять.", UNTOLD),
        ("AB-1234/5.6 MX-7", UNTOLD),
        ("Kündigungsfristen", UNTOLD),
        ("", UNTOLD),
    ],
)
def test_languages_are_told(text, language):
    assert language_of(stored_words(text)) == language


@pytest.mark.parametrize("language", ["de", "es", "ru", "ar"])
def test_paragraphs_and_questions_are_hardly_ever_mistaken(language):
    rows: list[Any] = orjson.loads((SETS / f"{language}.json").read_bytes())
    texts = [language_of(stored_words(row["context"])) for row in rows]
    questions = [language_of(asked_words(row["qas"][0]["question"])) for row in rows]
    assert {*texts, *questions} <= {language, UNTOLD}
    assert texts.count(language) >= 0.95 * len(rows)
    assert questions.count(language) >= 0.95 * len(rows)


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("de", "haus häuser häusern hauses"),
        ("es", "canción canciones"),
        ("ru", "город города городах городом"),
        ("ar", "مدرسة مدرسه المدرسة بالمدرسة"),
        ("en", "live lives lived living"),
        ("fr", "maison maisons"),
        ("tr", "kitap kitaplar kitaplarda"),
        ("el", "άνθρωπος άνθρωποι ανθρώπων"),
    ],
)
def test_forms_of_a_word_have_one_stem(language, forms):
    words = list(stored_words(forms))
    assert len({stem(word, language) for word in words}) == 1


def test_a_word_of_another_script_keeps_to_its_own():
    assert stem("городах", "de") == stem("город", "ru")
    assert stem("living", "ru") == stem("lived", SPACELESS) == "live"
    assert stem("健康", "en") == "健康"


@pytest.mark.parametrize("word", ["c++", "ab-1234/5.6", "foo_bar", "v1.2", "2024", "=", "’"])
def test_what_is_no_word_is_left_as_it_is(word):
    assert stem(word, "de") == stem(word, UNTOLD) == word


def test_every_form_that_texts_may_hold_is_asked_for_once():
    assert forms_asked("häuser", ["de", "en"], is_early=True) == ("haus", "häuser")
    assert forms_asked("houses", ["en"], is_early=False) == ("hous",)
    assert set(forms_asked("houses", ["en"], is_early=True)) == {"hous"}
    assert forms_asked("живёт", [UNTOLD], is_early=False) == ("живёт",)


def test_common_words_are_those_of_their_language():
    assert {"der", "welche"} <= common_words("de")
    assert "der" not in common_words("en")
    assert common_words("xx") == frozenset()


@given(st.text(min_size=1), st.sampled_from(["", "ar", "de", "en", "ru", "spaceless", "xx"]))
def test_no_word_is_lost(text, language):
    assert all(stem(word, language) for word in stored_words(text))
