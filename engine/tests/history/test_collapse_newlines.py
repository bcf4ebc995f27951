"""Newline runs go, except where CommonMark sees a fenced code block."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.history.normaliser import collapse_newlines

CODE = "x\n\n\ny"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("a", "a"),
        ("a\nb", "a\nb"),
        ("a\n\n\nb\n\nc", "a\nb\nc"),
        ("\n\na\n\n", "\na\n"),
        ("\n\n\n", "\n"),
        ("a\r\n\r\nb\r\nc", "a\nb\nc"),
        ("a\r\rb", "a\r\rb"),
        ("a\n \n\nb", "a\n \nb"),
        ("a\n\n`` x ``\n\nb", "a\n`` x ``\nb"),
    ],
)
def test_text_without_fences(text, expected):
    assert collapse_newlines(text) == expected


@pytest.mark.parametrize(
    "block",
    [
        f"```\n{CODE}\n```",
        f"```py\n{CODE}\n```",
        f"   ```py\n{CODE}\n   ```",
        f"~~~\n{CODE}\n~~~",
        f"~~~ a`b`\n{CODE}\n~~~",
        f"````\n```\n{CODE}\n```\n````",
        f"```\n~~~\n{CODE}\n~~~\n```",
        f"```\n{CODE}\n`````  \t",
        f"```\n{CODE}\n    ```\n\n\nstill inside\n```",
        f"```\n{CODE}\n``` x\n\n\nstill inside\n```",
        "```\n\n\n\n```",
    ],
)
def test_fenced_code_is_kept_and_the_text_around_it_collapses(block):
    assert collapse_newlines(f"a\n\n\n{block}\n\n\nb\n\n") == f"a\n{block}\nb\n"


def test_windows_newlines_become_plain_inside_code_too():
    assert collapse_newlines("```\r\na\r\n\r\nb\r\n```\r\n\r\nc") == "```\na\n\nb\n```\nc"


@pytest.mark.parametrize(
    "opening",
    ["    ```", "\t```", "x ```", "``", "``` a`b", "```inline```", "~~", "> ```"],
)
def test_what_is_no_fence_protects_nothing(opening):
    assert collapse_newlines(f"{opening}\n\n\na") == f"{opening}\na"


def test_an_unclosed_fence_runs_to_the_end():
    assert collapse_newlines("a\n\n```\n\n\nb\n\n") == "a\n```\n\n\nb\n\n"


def test_text_after_a_closed_block_collapses_before_the_next_block():
    text = "```\n\n\n```\n\n\nmid\n\n\n~~~\n\n\n~~~"
    assert collapse_newlines(text) == "```\n\n\n```\nmid\n~~~\n\n\n~~~"


TEXTS = st.lists(
    st.sampled_from(["\n", "\n\n\n", "\r\n", " ", "   ", "    ", "```", "~~~~", "`", "~", "a"])
).map("".join)


@settings(deadline=None, max_examples=300)
@given(TEXTS)
def test_collapsing_is_idempotent_and_removes_newlines_only(text):
    once = collapse_newlines(text)
    assert collapse_newlines(once) == once
    assert once.replace("\n", "") == text.replace("\r\n", "\n").replace("\n", "")


@settings(deadline=None, max_examples=300)
@given(TEXTS)
def test_without_fences_no_run_is_left(text):
    assert "\n\n" not in collapse_newlines(text.replace("`", "").replace("~", ""))
