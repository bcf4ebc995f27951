"""Test what of a long document a model is given: its beginning, and what the question is about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.excerpt import LEFT_OUT, excerpt, mark_pages
from engine.text.tokens import DEFAULT_ENCODING, count_text

FILLER = "The committee discussed the usual matters of the garden and the weather of the week. "


def cut(text, question="", limit_tokens=1_000):
    return excerpt(text, question=question, limit_tokens=limit_tokens, encoding=DEFAULT_ENCODING)


def book(pages=200, **special):
    """Pages of filler, with a sentence on some."""
    texts = [FILLER * 10 + special.get(f"page_{n}", "") for n in range(1, pages + 1)]
    joined, starts = "", []
    for text in texts:
        starts.append(len(joined))
        joined += text + "\n\n"
    return mark_pages(joined, tuple(starts))


def test_pages_are_marked():
    assert mark_pages("One\n\nTwo\n\n\n\nFour", (0, 5, 10, 12)) == (
        "[page 1]\nOne\n\n[page 2]\nTwo\n\n[page 4]\nFour"
    )
    assert mark_pages("No pages", ()) == "No pages"


def test_what_fits_is_not_touched():
    text = "A short text.  \n" * 20
    assert cut(text, "text?") == text


def test_a_long_one_is_cut_to_what_the_question_is_about():
    text = book(page_137="The annual dues are 42 crowns, payable in May.")
    found = cut(text, "How high are the annual dues?")
    assert "42 crowns" in found
    assert found.startswith("[page 1]\n")
    assert LEFT_OUT in found
    assert found.index("[page 1]") < found.index("[page 13")
    before = found[: found.index("42 crowns")]
    assert before[before.rindex("[page ") :].startswith("[page 137]")
    assert count_text(found) <= 1_000


def test_words_of_every_page_do_not_outweigh_rare_ones():
    text = book(page_90="Zanzibar.")
    assert "Zanzibar" in cut(text, "What did the committee of the garden discuss about Zanzibar?")


def test_chinese_is_found_as_well():
    text = book(page_150="年度会费为四十二元。")
    assert "四十二元" in cut(text, "年度会费是多少？")


def test_without_a_question_it_is_the_beginning():
    found = cut(book(), "")
    assert found.startswith("[page 1]\n")
    assert found.endswith(LEFT_OUT)
    assert "[page 100]" not in found


@pytest.mark.parametrize("text", ["x" * 300_000, "\n" * 300_000, "健" * 100_000, "a b " * 50_000])
def test_texts_without_paragraphs_are_cut_too(text):
    found = cut(text, "x")
    assert count_text(found) <= 1_000


@given(st.text(max_size=20_000), st.text(max_size=50), st.integers(100, 400))
def test_never_more_than_allowed(text, question, limit_tokens):
    text = text * 5
    found = cut(text, question, limit_tokens)
    assert found == text or count_text(found) <= limit_tokens * 1.2
