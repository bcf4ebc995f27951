"""Words as recall compares them."""

import pytest

from amber.lib.search.hybrid import index_text, pool_word
from amber.lib.search.stems import rough_stem


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
