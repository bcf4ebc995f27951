"""Words as recall compares them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amber.lib.search.hybrid import index_text, pool_word
from amber.lib.search.stems import (
    _ALGORITHMS,
    forms_asked,
    rough_stem,
    stem,
    stems_among,
    with_irregular,
)


@pytest.mark.parametrize(
    ("words", "stems"),
    [
        ("live lives lived living", {"liv"}),
        ("study studies studied", {"stud"}),
        ("call calls called calling", {"cal"}),
        ("run runs running", {"run"}),
        ("box boxes", {"box"}),
        ("happy happily", {"hap"}),
        ("bus", {"bus"}),
        ("c++ v1.2 健康 naïve", {"c++", "v1.2", "健康", "naïve"}),
    ],
)
def test_endings_do_not_matter(words, stems):
    assert {rough_stem(word) for word in words.split()} == stems


def test_a_row_holds_its_pool_and_each_stem_once():
    held = index_text("Cats and a cat; it's C++", pool_word("chat", "x"))
    assert held.startswith("'chat::x' ")
    assert held.count("'cat'") == 1
    assert "'c++'" in held
    assert ":" not in held.replace("'chat::x'", "")


@pytest.mark.parametrize(
    ("asked", "told"),
    [("lose", "lost"), ("bought", "buy"), ("children", "child"), ("go", "went"), ("felt", "feel")],
)
def test_irregular_forms_of_english_words_are_asked_for(asked: str, told: str) -> None:
    known = forms_asked(asked, ["en"], is_early=False)
    assert stem(told, "en") not in known
    assert stem(told, "en") in with_irregular(known, asked, "en")
    assert with_irregular(known, asked, "en")[0] == known[0]
    assert with_irregular(known, asked, "de") == known


def test_regular_words_have_no_other_forms() -> None:
    assert with_irregular(("hous",), "houses", "en") == ("hous",)


LETTERS = {
    "ar": "ابتدرسعفقكلمنهويءأإىةًّ",
    "el": "αβγδεικλμνορστυωάέήίόύώς",
    "hi": "कखगतनपमरलसाीुें",
    "ru": "абвгдеёиклмнопрстьыйюя",
}


@given(st.data(), st.sampled_from(sorted({*_ALGORITHMS, ""})))
def test_words_whose_stems_are_wanted_are_those_that_all_stemming_finds(data, language):
    letters = LETTERS.get(language, "") + "abdegilnrstuyéäößçíñø健康ก1"
    some = st.text(alphabet=letters, min_size=1, max_size=7)
    ended = st.builds(
        "{}{}{}".format,
        st.sampled_from(["", "ge", "ال"]),
        some,
        st.sampled_from(["", "s", "ing", "en"]),
    )
    words = data.draw(st.lists(ended, min_size=1, max_size=12))
    cut = {word: stem(word, language) for word in words}
    wanted = set(data.draw(st.lists(st.sampled_from([*cut.values()]), max_size=4)))
    assert stems_among(wanted, words, language) == {w: s for w, s in cut.items() if s in wanted}
