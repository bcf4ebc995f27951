"""Text of ChatGLM3's replies, in pieces of any size: what of it is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.provider.dialects.chatglm3 import HiddenCalls

NAMES = ("get_weather", "get", "clock")
CALL = "get_weather\n ```python\ntool_call(city='Ulm')\n```"


def shown(text: str, size: int, *, called: bool) -> str:
    hidden = HiddenCalls(NAMES)
    pieces = [hidden.feed(text[i : i + size]) for i in range(0, len(text), size)]
    return "".join([*pieces, hidden.end(called=called)])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "visible"),
    [
        (CALL, ""),
        ("\n" + CALL, ""),
        (f"Let me look.\n{CALL}", "Let me look.\n"),
        (f"Let me look.<|assistant|>{CALL}", "Let me look."),
        (f"Let me look.<|assistant|>\n{CALL}", "Let me look."),
        ("get_weather\ntool_call(city='Ulm')", ""),
    ],
)
def test_a_call_is_hidden(text: str, visible: str, size: int) -> None:
    assert shown(text, size, called=True) == visible


@given(st.text(alphabet="get_wahr\n <|asint>`tol(", max_size=40), st.integers(1, 9))
def test_all_else_is_shown(text: str, size: int) -> None:
    assert shown(text, size, called=False) == text


@pytest.mark.parametrize(
    "text", ["get", "get_weather", "get_weather is a tool.", "clock\nis a word", "a < b\nget it"]
)
def test_what_only_looks_like_a_call_is_text_once_that_is_clear(text: str) -> None:
    hidden = HiddenCalls(NAMES)
    assert hidden.feed(f"{text}\nand more") + hidden.end(called=False) == f"{text}\nand more"


def test_text_is_not_kept_longer_than_needed() -> None:
    hidden = HiddenCalls(NAMES)
    assert hidden.feed("It ") == "It "
    assert hidden.feed("gets\n") == "gets\n"
    assert hidden.feed("ge") == ""
    assert hidden.feed("ts late") == "gets late"
