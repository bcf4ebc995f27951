"""What always holds of a normalised history, whatever was said in which order."""

from copy import deepcopy
from datetime import timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.history.normaliser import NoHumanMessage, collapse_newlines
from engine.messages import Message
from engine.tests.history.rows import (
    ADA,
    AT,
    BO,
    CAT,
    NOTES,
    answer,
    human,
    run,
)
from engine.tool_calls import ToolCall

CONTENTS = st.sampled_from(["", " \n", "x", "a\n\n\nb", "```\n\n\nc\n```\n\nd", "e\r\n\r\nf"])
TIMES = st.none() | st.integers(0, 10**6).map(lambda n: AT + timedelta(seconds=n))
AUTHORS = st.sampled_from([None, ADA, BO])
CALLS = st.builds(
    ToolCall,
    st.sampled_from("xyz"),
    st.just("f"),
    st.just("{}"),
    st.sampled_from([None, "r1", "r2"]),
)


def new_message(*args: Any, **more: Any) -> Message:
    """As it is made elsewhere: of a tuple hypothesis would make up all that has a default."""
    return Message(*args, **more)


SPOKEN = st.sampled_from(
    ["human", "hide_human", "human_later", "system", "hide_system", "assistant", "knowledge"]
)
MESSAGES = st.lists(
    st.builds(new_message, SPOKEN, CONTENTS, TIMES, AUTHORS)
    | st.builds(new_message, st.sampled_from(["tool_call", "tool"]), CONTENTS, tool_call=CALLS)
    | st.builds(new_message, st.just("file"), file=st.sampled_from([CAT, NOTES])),
    max_size=14,
)
POSITIONS = st.sampled_from(["first", "last", "only_first"])
PROPERTY = settings(deadline=None, max_examples=200)


def made_of(messages, position):
    """What comes out, or None when nobody asked."""
    try:
        return run(*messages, prompts=["P"], volatile=["V"], system_position=position)
    except NoHumanMessage:
        return None


@PROPERTY
@given(MESSAGES, POSITIONS)
def test_it_is_deterministic_and_mutates_nothing(messages, position):
    before = deepcopy(messages)
    first = made_of(messages, position)
    shown = deepcopy(first)
    assert made_of(messages, position) == first == shown
    assert messages == before


@PROPERTY
@given(MESSAGES, POSITIONS)
def test_every_call_is_followed_by_its_results_and_every_result_has_a_call(messages, position):
    open_calls: list[str] = []
    closed = 0
    for message in made_of(messages, position) or []:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
            closed += 1
            continue
        assert open_calls == []
        open_calls = [call["id"] for call in message.get("tool_calls", [])]
    assert open_calls == []
    if made_of(messages, position):
        assert closed == sum(message.role == "tool_call" for message in messages)


@PROPERTY
@given(MESSAGES, POSITIONS)
def test_no_neighbours_that_could_merge_are_left(messages, position):
    made = made_of(messages, position) or []
    for one, other in pairwise(made):
        if one["role"] == other["role"]:
            assert one["role"] == "tool" or "tool_calls" in one or "tool_calls" in other
    for message in made:
        parts = message["content"]
        if isinstance(parts, list):
            kinds = "".join(part["type"][0] for part in parts)
            assert "i" in kinds
            assert "tt" not in kinds


@PROPERTY
@given(MESSAGES)
def test_the_prompt_stands_where_the_model_wants_it(messages):
    if made_of(messages, "first") is None:
        return
    first, last, only = (made_of(messages, p) for p in ("first", "last", "only_first"))
    assert first[0]["role"] == "system"
    assert first[0]["content"].startswith("P")
    asked = max(n for n, message in enumerate(first) if message["role"] == "user")
    assert "V" in first[asked - 1]["content"].split("\n")
    assert last[-1]["role"] == "system"
    assert "P" in last[-1]["content"].split("\n")
    assert [n for n, message in enumerate(only) if message["role"] == "system"] == [0]


@PROPERTY
@given(MESSAGES)
def test_it_raises_exactly_when_nobody_asked(messages):
    left = ("human", "hide_human", "human_later")
    asked = any(m.role in ("human", "hide_human") for m in messages)
    words = any(m.role == "file" or (m.role in left and m.content.strip()) for m in messages)
    assert (made_of(messages, "first") is not None) == (asked and words)


@PROPERTY
@given(st.lists(st.builds(new_message, st.just("human"), CONTENTS), min_size=1))
def test_unfenced_newline_runs_collapse_and_fenced_ones_stay(messages):
    for made in made_of(messages, "only_first") or []:
        if made["role"] == "user":
            texts = [collapse_newlines(m.content) for m in messages if m.content.strip()]
            assert made["content"] == "\n".join(texts)
            assert "\n\n" not in made["content"].replace("```\n\n\nc\n```", "code")


@PROPERTY
@given(MESSAGES, POSITIONS.filter(lambda position: position != "only_first"))
def test_what_varies_changes_nothing_in_front_of_it(messages, position):
    chat = [human("q0"), *messages, answer("a"), human("q9")]
    plain = run(*chat, prompts=["P"], system_position=position)
    varied = run(*chat, prompts=["P"], volatile=["V"], system_position=position)
    changed = next(n for n, message in enumerate(varied) if message not in plain)
    assert varied[:changed] == plain[:changed]
    assert varied[changed]["role"] == "system"
    assert changed >= len(varied) - 2
