"""Chunks: exact places, whole sentences, headings; each character counted a few times at most."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.text.tokens import count_text
from libraries.chunking.chunker import chunk


def contents(text, **options):
    return [text[each.start : each.end] for each in chunk(text, **options)]


def small(text, *, size=20, overlap=0, **more):
    """A character is a token, so that sizes can be seen."""
    return contents(text, size_tokens=size, overlap_tokens=overlap, count=len, **more)


# -- What holds for every text ---------------------------------------------------------------------

MARKUP = ["# ", "## ", "\n", "\n\n", "| a | b |\n", "```\n", "~~~", "- ", "1. ", "===\n", "---\n"]
WORDS = [
    "word",
    " ",
    "  ",
    "a. ",
    "句子。",
    "！",
    "？”",
    "…",
    "\t",
    "\u3000",
    "😀",
    "x" * 50,
    "\x0b",
]
TEXTS = st.lists(
    st.one_of(st.sampled_from(MARKUP), st.sampled_from(WORDS), st.text(max_size=20)), max_size=60
).map("".join)
SIZES = st.integers(1, 60).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


def at_most(tokens_of_char):
    """A count that adds up: so many for each character."""
    return lambda text: tokens_of_char * len(text)


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, sizes=SIZES, is_source=st.booleans())
@example(text="   ", sizes=(1, 0), is_source=False)
@example(text="# A\n# B\n", sizes=(3, 2), is_source=False)
def test_all_content_is_in_chunks_of_the_size(text, sizes, is_source):
    size, overlap = sizes
    mime_type = "text/x-python" if is_source else ""
    chunks = chunk(
        text, size_tokens=size, overlap_tokens=overlap, mime_type=mime_type, count=at_most(1)
    )
    covered: set[int] = set()
    for order, each in enumerate(chunks):
        content = text[each.start : each.end]
        assert each.order == order
        assert content.strip()
        assert content == content.rstrip()
        assert len(content) <= each.tokens <= size
        covered.update(range(each.start, each.end))
    assert all(text[place].isspace() for place in set(range(len(text))) - covered)
    starts = [each.start for each in chunks]
    ends = [each.end for each in chunks]
    assert starts == sorted(starts)
    assert ends == sorted(set(ends))


@settings(max_examples=100, deadline=None)
@given(text=TEXTS, sizes=SIZES)
def test_chunks_share_at_most_the_overlap(text, sizes):
    size, overlap = sizes
    chunks = chunk(text, size_tokens=size, overlap_tokens=overlap, count=len)
    for before, after in pairwise(chunks):
        assert before.end - after.start <= overlap


@settings(max_examples=100, deadline=None)
@given(text=TEXTS, sizes=SIZES)
def test_the_same_text_gives_the_same_chunks(text, sizes):
    size, overlap = sizes
    first, second = (chunk(text, size_tokens=size, overlap_tokens=overlap) for _ in range(2))
    assert first == second


@settings(max_examples=50, deadline=None)
@given(text=TEXTS)
def test_a_character_of_many_tokens_still_comes_in_a_chunk(text):
    chunks = chunk(text, size_tokens=1, overlap_tokens=0, count=at_most(3))
    assert "".join("".join(text[c.start : c.end].split()) for c in chunks) == "".join(text.split())


@pytest.mark.parametrize("size", [50, 400])
def test_real_counts_stay_below_the_size(size):
    text = "The pump P-102 must be primed first. " * 40 + "\n\n水泵必须先灌满水，然后启动。" * 60
    for each in chunk(text, size_tokens=size, overlap_tokens=size // 10):
        assert count_text(text[each.start : each.end]) <= size
        assert each.tokens <= size


# -- Cost ------------------------------------------------------------------------------------------

ENDLESS = {
    "one_word": "a" * 200_000,
    "spaces": " " * 200_000 + "a",
    "line_ends": "a" + "\n" * 200_000 + "b",
    "short_lines": "a\n" * 100_000,
    "short_sentences": "a. " * 70_000,
    "full_stops": "." * 200_000,
    "wide_full_stops": "。" * 200_000,
    "closing_marks": "”" * 200_000,
    "no_spaces": "没有标点的中文内容" * 20_000,
    "table": "| a | b |\n|---|---|\n" + "| 1 | two words |\n" * 10_000,
    "one_row": "| " + "cell | " * 30_000,
    "open_fence": "```\n" + "x = 1\n" * 30_000,
    "headings": "# a\n" * 50_000,
    "deep_headings": "".join(f"{'#' * (n % 6 + 1)} t\n\nx\n\n" for n in range(20_000)),
    "marks": "#" * 200_000,
    "items": "- a\n" * 50_000,
    "underlines": "a\n---\n" * 30_000,
}


@pytest.mark.parametrize("name", sorted(ENDLESS))
@pytest.mark.parametrize("overlap", [0, 99])
def test_no_text_is_counted_over_and_over(name, overlap):
    """Linear in the text, whatever it is: in characters counted, and in counts."""
    text = ENDLESS[name]
    counted = []

    def count(piece):
        counted.append(len(piece))
        return -(-len(piece) // 4)

    chunks = chunk(text, size_tokens=100, overlap_tokens=overlap, count=count)
    assert sum(counted) <= 5 * len(text)
    assert len(counted) <= len(text)
    assert sum(each.end - each.start for each in chunks) <= 2.1 * len(text)


def test_a_long_heading_is_not_stored_with_every_chunk():
    text = "# " + "title " * 5_000 + "\n\n" + "Some text here. " * 1_000
    chunks = chunk(text, size_tokens=100, overlap_tokens=10)
    assert max(len(each.heading or "") for each in chunks) <= 120


# -- Where it is cut -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\n", "\u3000\u3000"])
def test_a_text_without_content_has_no_chunks(text):
    assert chunk(text, size_tokens=10, overlap_tokens=2) == []


def test_a_short_text_is_one_chunk_without_its_margins():
    assert small("\n\n  Short.  \n\n") == ["  Short."]


def test_paragraphs_are_kept_together():
    assert small("One one.\n\nTwo two two two.\n\nThree.") == [
        "One one.",
        "Two two two two.",
        "Three.",
    ]


def test_sentences_are_kept_together():
    text = "First sentence is. Second one comes. Third one ends."
    assert small(text, size=40) == ["First sentence is. Second one comes.", "Third one ends."]


def test_chinese_sentences_end_with_their_closing_marks():
    text = "他说：“今天下雨了。”我们不去了！为什么？因为；所以……就这样吧。"
    assert small(text, size=11) == [
        "他说：“今天下雨了。”",
        "我们不去了！为什么？",
        "因为；所以……",
        "就这样吧。",
    ]


def test_numbers_initials_and_versions_are_no_sentences():
    text = "Version 3.14.2 of e.g. foo.bar() runs. It does."
    assert small(text, size=42) == ["Version 3.14.2 of e.g. foo.bar() runs.", "It does."]


def test_a_long_sentence_is_cut_at_spaces():
    text = "alpha beta gamma delta epsilon zeta eta theta"
    assert " ".join(small(text, size=20)) == text


def test_a_long_word_is_cut_anywhere():
    assert "".join(small("x" * 95, size=20)) == "x" * 95


def test_code_is_kept_whole_where_it_fits():
    code = "```\n# no heading\n\nx\n```"
    assert code in small(f"Some words before it.\n\n{code}\n\nAfter.", size=30)


def test_code_that_does_not_fit_is_cut_at_lines():
    lines = [f"line_{n} = {n}" for n in range(9)]
    chunks = small("```\n" + "\n".join(lines) + "\n```", size=30)
    assert [line for each in chunks for line in each.split("\n")] == ["```", *lines, "```"]


def test_a_table_is_kept_whole_where_it_fits():
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    chunks = small(f"Words. More words. And more.\n\n{table}\n\nAfter.", size=40)
    assert any(table in each for each in chunks)


def test_a_table_that_does_not_fit_is_cut_at_rows():
    rows = [f"| {n} | cell |" for n in range(12)]
    chunks = small("\n".join(rows), size=40)
    assert [row for each in chunks for row in each.split("\n")] == rows


def test_items_stay_together_before_paragraphs_are_split():
    assert small("- one\n- two\n- three\n\nText text text.", size=22) == [
        "- one\n- two\n- three",
        "Text text text.",
    ]


def test_source_code_is_cut_between_its_parts():
    code = "def a():\n    # one\n    return 1\n\n\ndef b():\n    # two\n\n    return 2\n"
    chunks = small(code, size=45, mime_type="text/x-python")
    assert chunks == ["def a():\n    # one\n    return 1", "def b():\n    # two\n\n    return 2"]


def test_indentation_of_a_first_line_stays():
    code = "def a():\n    one = 1\n    two = 2\n    three = 3\n"
    chunks = small(code, size=24, mime_type="text/x-python")
    assert chunks[1].startswith("    ")


# -- Overlap ---------------------------------------------------------------------------------------


def test_the_next_chunk_begins_with_the_last_sentence():
    text = "First sentence here. Then another. Third sentence now. Fourth at the end."
    assert small(text, size=40, overlap=16) == [
        "First sentence here. Then another.",
        "Then another. Third sentence now.",
        "sentence now. Fourth at the end.",
    ]


def test_a_long_sentence_is_repeated_from_a_word_on():
    text = "alpha beta gamma delta epsilon zeta. " + "Another sentence follows at once now."
    second = small(text, size=60, overlap=15)[1]
    assert second.startswith("epsilon zeta. Another")


def test_nothing_is_repeated_over_a_heading():
    text = "Some text under one. More of it.\n\n# Next\n\nText under next."
    assert small(text, size=36, overlap=15) == [
        "Some text under one. More of it.",
        "# Next\n\nText under next.",
    ]


# -- Headings and pages ----------------------------------------------------------------------------


def headings(text, size=40, **more):
    return [
        each.heading for each in chunk(text, size_tokens=size, overlap_tokens=0, count=len, **more)
    ]


def test_the_path_of_headings_is_told():
    text = (
        "Before any heading it says.\n\n# Manual\n\nAbout it, in a sentence.\n\n"
        "## Setup #\n\nPlug it in, and wait.\n\n# End\n\nThat is all there is."
    )
    assert headings(text) == [None, "Manual", "Manual > Setup", "End"]


def test_underlined_headings_are_headings():
    text = "Title\n=====\n\nText of it, one line.\n\nPart\n----\n\nText of part, a line."
    assert headings(text) == ["Title", "Title > Part"]


def test_what_looks_like_a_heading_in_code_is_none():
    text = "# Real\n\nSome text, long enough.\n\n```\n# not real\n```\n\nText after the code."
    assert set(headings(text)) == {"Real"}


def test_comments_of_source_code_are_no_headings():
    assert headings("# comment\nx = 1\n", mime_type="text/x-python") == [None]


def test_short_sections_share_a_chunk_and_the_path_they_share():
    text = "# A\n\n## B\n\nb\n\n## C\n\nc"
    assert headings(text, size=200) == ["A"]


def test_a_heading_is_not_left_without_its_text():
    text = "Some words that fill it up.\n\n# Heading\n\nIts text follows."
    assert small(text, size=44)[-1] == "# Heading\n\nIts text follows."


def test_pages_are_counted_from_one():
    text = "First page text.\n\nSecond page text.\n\nA third page."
    chunks = chunk(text, size_tokens=20, overlap_tokens=0, pages=(0, 18, 37), count=len)
    assert [each.page for each in chunks] == [1, 2, 3]


def test_without_pages_there_is_no_page():
    assert chunk("Text.", size_tokens=9, overlap_tokens=0)[0].page is None
