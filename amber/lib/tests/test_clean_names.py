import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amber.lib.names import plain_name


@pytest.mark.parametrize(
    "name",
    [
        "Alice",
        "Zoë  O’Neill",
        "山田\u3000太郎",
        "می\u200cخواهم",
        "ක්\u200dරිස්තු",
        "র\u200d্যাব",
        "👩🏽\u200d🔬 team",
        "❤\ufe0f\u200d🔥",
        "שלום",
    ],
)
def test_keeps_names_as_people_write_them(name):
    assert plain_name(name) == name


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("\u202eecilA", "ecilA"),
        ("Ali\u200bce", "Alice"),
        ("Ali\u200cce", "Alice"),
        ("Ali\u200dce", "Alice"),
        ("\ufeffAlice\u200f", "Alice"),
        ("\u2067Alice\u2069", "Alice"),
        ("Al\u00adi\x07ce\x85", "Alice"),
        ("Al\U000e0041ice", "Alice"),
        ("می\u200c\u200cخواهم", "می\u200cخواهم"),
        ("Alice\r\nadmin\u2028here", "Alice admin here"),
        ("\u3164\u2800\u200b", ""),
        (" \u202e ", ""),
    ],
)
def test_leaves_out_what_nobody_sees(given, kept):
    assert plain_name(given) == kept


@given(st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Lu", "Zs"])))
def test_is_one_line_without_controls_and_stays_as_it_is(given):
    name = plain_name(given)
    assert len(name.splitlines()) <= 1
    assert not any(unicodedata.category(char) == "Cc" for char in name)
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f") & set(name)
    assert plain_name(name) == name
