"""Which words a text has, and that what is stored is found by what is asked."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amber.lib.search import words
from amber.lib.search.words import asked_words, tsquery_literal, tsvector_literal

LEXEME = re.compile(r"'((?:[^'\\]|''|\\\\)*)'(:\*)?")


def lexemes(literal: str | None) -> set[str]:
    return {
        found[0].replace("''", "'").replace("\\\\", "\\") for found in LEXEME.findall(literal or "")
    }


def finds(query: str, text: str) -> bool:
    """What `@@` answers, for queries in the two shapes that `tsquery_literal` makes."""
    stored = lexemes(tsvector_literal(text))
    asked = tsquery_literal(query)
    if asked is None:
        return False

    def is_stored(found: re.Match[str]) -> str:
        word = found[1].replace("''", "'").replace("\\\\", "\\")
        prefix = found[2] is not None
        return str(any(each.startswith(word) if prefix else each == word for each in stored))

    formula = LEXEME.sub(is_stored, asked).replace("&", " and ").replace("|", " or ")
    return bool(eval(formula))


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("", ""),
        (" \0\t…!? \ud800", ""),
        ("C++ foo_bar C++", "'c++':1,4 'foo':2 'foo_bar':2 'bar':3"),
        ("健康", "'健康':1 '康':2"),
        ("年", "'年':1"),
        ("2024年", "'2024':1 '年':2"),
        ("AB-1234", "'ab':1 'ab-1234':1 '1234':2"),
        ("getUser", "'getuser':1 'get':1 'user':1"),
        ("C:\\x", "'c':1 'c:\\\\x':1 'x':2"),
        ("don't", "'don':1 't':2"),
    ],
)
def test_a_text_becomes_this_literal(text: str, literal: str) -> None:
    assert tsvector_literal(text) == literal


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("健康", "我想了解健康知识"),
        ("健康", "很健康"),
        ("健康", "Health健康2024"),
        ("健康", "第一行健\n康第二行"),
        ("健", "我想了解健康"),
        ("康", "我想了解健康"),
        ("了解健康", "我想了解健康知识"),
        ("2024年", "在2024年春天"),
        ("２０２４年", "在2024年春天"),
        ("カーテン", "青いカーテンの部屋"),
        ("ｶｰﾃﾝ", "カーテン"),
        ("한국", "한국어를 배우다"),
        ("ภาษา", "ภาษาไทย"),
        ("हिन्दी", "यह हिन्दी है"),
        ("c++", "Written in C++."),
        ("C#", "C#, F# and so on"),
        ("c++11", "since C++11"),
        ("foo_bar.baz", "call foo_bar.baz() here"),
        ("foo_bar", "call foo_bar.baz() here"),
        ("bar.baz", "call foo_bar.baz() here"),
        ("baz", "call foo_bar.baz() here"),
        ("getUserName", "x.getUserName()"),
        ("getusername", "x.getUserName()"),
        ("user name", "x.getUserName()"),
        ("UserName", "x.getUserName()"),
        ("ab-1234/5.6", "part AB-1234/5.6, new"),
        ("AB-1234", "part AB-1234/5.6, new"),
        ("1234/5.6", "part AB-1234/5.6, new"),
        ("AB‐1234", "part AB-1234"),
        ("std::vector", "a std::vector<int> of"),
        ("user", "the user's name"),
        ("ΟΔΟΣ", "οδος"),
        ("file", "ﬁle"),
        ("cooperate", "co\u00adoperate"),
        ("example.com", "see https://example.com/a/b.html#top"),
        ("b.html", "see https://example.com/a/b.html#top"),
        ("10", "over 10+ years"),
    ],
)
def test_the_query_finds_the_text(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("c", "C++ and C# and C++11 and C#7"),
        ("c++", "plain C"),
        ("健康", "健身与康复"),
        ("AB-1234", "AB is not 1234"),
        ("foo_bar", "bar of foo"),
        ("java", "JavaScript"),
        ("", "anything"),
    ],
)
def test_the_query_does_not_find_the_text(query: str, text: str) -> None:
    assert not finds(query, text)


def test_a_query_without_words_is_none() -> None:
    assert tsquery_literal("?! …\0") is None


def test_any_asks_for_one_of_the_words_or_parts() -> None:
    assert tsquery_literal("AB-1 健康", "any") == "'ab' | 'ab-1' | '1' | '健康'"


def test_a_single_character_is_asked_for_as_a_prefix() -> None:
    assert tsquery_literal("健") == "'健':*"


def test_words_are_cut_to_what_postgres_takes() -> None:
    (word,) = lexemes(tsvector_literal("д" * 1000))
    assert len(word.encode()) == words.MAX_TOKEN_BYTES
    assert finds("д" * 1000, "д" * 1000)


def test_positions_stop_growing() -> None:
    literal = tsvector_literal("a " * 20_000 + "b")
    assert literal.endswith(f"'b':{words.MAX_POSITION}")


def test_a_vector_stays_below_the_limit_of_postgres() -> None:
    literal = tsvector_literal(" ".join(f"word{number:07}" for number in range(100_000)))
    size_bytes = sum(len(word.encode()) + 10 for word in lexemes(literal))
    assert words.MAX_VECTOR_BYTES < size_bytes < words.MAX_VECTOR_BYTES + 1_000


def test_a_query_is_bounded() -> None:
    assert len(lexemes(tsquery_literal(" ".join(map(str, range(5_000)))))) == words.MAX_QUERY_TERMS
    compound = ".".join("x" * 400 + str(number) for number in range(200))
    huge = tsquery_literal(" ".join(f"{compound}{number}" for number in range(100)))
    assert huge is not None
    assert len(huge) < 2 * words.MAX_QUERY_BYTES


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "a" + "\u0301\u0323" * 500_000,
        "a." * 300_000,
        "a+" * 300_000,
        "." * 1_000_000,
        "健" * 300_000,
        "健\n" * 300_000,
        "健" + " " * 1_000_000,
        "aB" * 500_000,
        "\ufe0f" * 300_000,
    ],
    ids=lambda text: f"{text[:2]!a}",
)
def test_monotonous_text_is_no_trap(text: str) -> None:
    """Quadratic work on these would take hours."""
    tsvector_literal(text)
    tsquery_literal(text, "any")


@given(st.text())
def test_any_text_makes_literals_of_one_form(text: str) -> None:
    one = r"'(?:[^'\\]|''|\\\\)+'"
    vector = tsvector_literal(text)
    assert re.fullmatch(rf"(?:{one}:\d+(?:,\d+)*(?: |$))*", vector)
    for mode in ("all", "any"):
        query = tsquery_literal(text, mode)
        assert query is None or re.fullmatch(
            rf"[( ]*{one}(?::\*)?(?:[ ()&|]+{one}(?::\*)?)*[ )]*", query
        )
        assert (query is None) == (vector == "")


@given(st.text(), st.text(min_size=1), st.text())
def test_a_text_is_found_by_itself_between_other_words(before: str, text: str, after: str) -> None:
    assert tsquery_literal(text) is None or finds(text, f"{before}\n\n{text}\n\n{after}")


@given(st.text(alphabet="健康生活年。", min_size=1), st.text(), st.text())
def test_a_spaceless_text_is_found_whatever_stands_around_it(
    text: str, before: str, after: str
) -> None:
    assert tsquery_literal(text) is None or finds(text, before + text + after)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Priya's bowl", ["priya", "bowl"]),
        ("Who’ll call? They've left", ["who", "call", "they", "left"]),
        ("Why didn't Ann come?", ["why", "ann", "come"]),
        ("l'eau d'Ann", ["l", "eau", "d", "ann"]),
        ("don't-know", ["know"]),
        ("'s", ["s"]),
    ],
)
def test_what_english_hangs_on_a_word_is_not_asked_for(question, asked):
    assert asked_words(question) == asked


@given(
    st.text(max_size=60)
    | st.text(alphabet="abAB0 .,;:-_+#/'\n", max_size=40)
    | st.text(alphabet="aÉßς健คเ한. \n\r\u00a0\u00ad\u0301\u2028\ufe0f½ﷺ_#+", max_size=40)
)
@example("x" * 600)
def test_what_is_remembered_of_words_is_what_the_whole_text_gives(text: str) -> None:
    assert list(words.stored_words(text)) == list(words._cut_text(text))


def test_what_is_remembered_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    known = words._WordsByPart()
    monkeypatch.setattr(words, "_words_by_part", known)
    monkeypatch.setattr(words, "_MAX_REMEMBERED", 10)
    long = "x" * 65
    assert list(words.stored_words(f"{long} " + " ".join(f"w{n}" for n in range(25))))[-1] == "w24"
    assert len(known) <= 10
    assert long not in known
