"""What a conversation goes through for models that refuse it as it is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.message_mends import BRIDGE, UNSIGNED, MessageMends, known_mends
from engine.messages import is_produced, mark_produced
from engine.tests.history.rows import calling, said, told

ASKED = said("user", "?")
PLAIN = MessageMends()
SHORT = MessageMends(has_short_ids=True)


def ids_of(messages: list[Any]) -> list[str]:
    """The ids of calls and results, in order."""
    ids: list[str] = []
    for message in messages:
        ids += [call["id"] for call in message.get("tool_calls", ())]
        ids += [message["tool_call_id"]] if message["role"] == "tool" else []
    return ids


def test_what_needs_no_mending_is_the_same() -> None:
    made = mark_produced("[image: cat.png]")
    messages = [ASKED, calling("a", "b"), told("a"), told("b"), made, said("assistant", "!")]
    mended = PLAIN.apply(messages)
    assert mended == messages
    assert is_produced(mended[4])


def test_short_ids_are_the_same_in_each_request_and_fit_their_results() -> None:
    first = [ASKED, calling("call_1", "abcDEF123"), told("abcDEF123"), told("call_1")]
    ids = ids_of(SHORT.apply(first))
    assert ids[1] == ids[2] == "abcDEF123"
    assert ids[0] == ids[3] != "call_1"
    later = SHORT.apply([*first, ASKED, calling("call_2"), told("call_2")])
    assert ids_of(later)[:4] == ids
    assert first[1] == calling("call_1", "abcDEF123")


def test_an_id_that_comes_again_is_another() -> None:
    """Servers that number the calls of each reply from 0."""
    messages = [ASKED, calling("call_0"), told("call_0"), calling("call_0"), told("call_0")]
    one, its_result, two, other_result = ids_of(PLAIN.apply(messages))
    assert (one, its_result) == ("call_0", "call_0")
    assert two == other_result != one


@given(st.lists(st.lists(st.text(max_size=12), min_size=1, max_size=3), max_size=4))
def test_any_ids_become_short_and_different(replies: list[list[str]]) -> None:
    messages: list[Any] = [ASKED]
    for ids in replies:
        messages += [calling(*ids), *map(told, ids)]
    mended: list[Any] = SHORT.apply(messages)
    called = [call["id"] for m in mended for call in m.get("tool_calls", ())]
    assert len({*called}) == len(called)
    assert all(len(each) == 9 and each.isascii() and each.isalnum() for each in called)
    assert sorted(m["tool_call_id"] for m in mended if m["role"] == "tool") == sorted(called)


def test_only_unsigned_first_calls_of_the_last_exchange_are_signed() -> None:
    own: Any = {"extra_content": {"google": {"thought_signature": "own"}}}
    signed = calling("c") | {"tool_calls": [calling("c")["tool_calls"][0] | own]}
    messages = [ASKED, calling("a"), told("a"), ASKED, signed, told("c"), calling("d", "e")]
    mended: list[Any] = MessageMends(signs_calls=True).apply(messages)
    found = [[c.get("extra_content") for c in m["tool_calls"]] for m in mended if "tool_calls" in m]
    assert found == [[None], [own["extra_content"]], [UNSIGNED, None]]


def test_a_word_stands_between_a_tool_and_a_user() -> None:
    made = mark_produced("[image: cat.png]")
    mended = MessageMends(has_bridges=True).apply([ASKED, calling("a"), told("a"), made, ASKED])
    assert [m["role"] for m in mended] == ["user", "assistant", "tool", "assistant", "user", "user"]
    assert mended[3]["content"] == BRIDGE


THINKING = calling("a") | {"reasoning_content": "Hm.", "state": 1}
SENT: list[Any] = [ASKED, THINKING, told("a"), said("assistant", "!")]


@pytest.mark.parametrize(
    ("refusal", "learnt"),
    [
        ("Tool call id was a but must be a-z, A-Z, 0-9, with a length of 9.", SHORT),
        ("Invalid 'messages[1].tool_calls[0].id': string too long.", SHORT),
        ("messages.1.content.0.tool_use.id: String should match pattern", SHORT),
        (
            "Function call is missing a thought_signature in functionCall parts.",
            MessageMends(signs_calls=True),
        ),
        ("Unexpected role 'user' after role 'tool'", MessageMends(has_bridges=True)),
        ("property 'state' is unsupported", MessageMends(dropped=frozenset({"state"}))),
        ("The `reasoning_content` must be passed back", MessageMends(fills_reasoning=True)),
        ("The temperature is too high.", None),
        ("The estate has a statement.", None),
    ],
)
def test_a_refusal_says_what_to_mend(refusal: str, learnt: MessageMends | None) -> None:
    assert PLAIN.after(refusal, SENT) == learnt
    if learnt is not None and not learnt.fills_reasoning:
        assert learnt.after(refusal, learnt.apply(SENT)) is None


def test_reasoning_that_is_demanded_and_then_refused_is_left_out() -> None:
    refusal = "Extra inputs are not permitted: reasoning_content"
    filled = PLAIN.after(refusal, SENT)
    assert filled == MessageMends(fills_reasoning=True)
    without = filled.after(refusal, filled.apply(SENT))
    assert without == MessageMends(dropped=frozenset({"reasoning_content"}))
    assert not any("reasoning_content" in message for message in without.apply(SENT))
    assert without.after(refusal, without.apply(SENT)) is None


def test_fields_of_calls_are_left_out_as_well() -> None:
    signed: Any = calling("a") | {"tool_calls": [calling("a")["tool_calls"][0] | {"state": 1}]}
    learnt = PLAIN.after('Unknown name "state"', [ASKED, signed, told("a")])
    assert learnt is not None
    assert learnt.apply([ASKED, signed, told("a")]) == [ASKED, calling("a"), told("a")]


def test_deepseek_is_known_by_its_address() -> None:
    assert known_mends("https://api.deepseek.com/v1", "deepseek-chat").fills_reasoning
    assert not known_mends("https://vllm.example.com/v1", "deepseek-v3").fills_reasoning


@pytest.mark.parametrize(
    ("base_url", "upstream_id", "has_short_ids"),
    [
        ("https://api.mistral.ai/v1", "m", True),
        ("http://localhost:8000/v1", "mistralai/Devstral-Small", True),
        ("https://api.openai.com/v1", "gpt-5", False),
    ],
)
def test_mistral_is_known(base_url: str, upstream_id: str, has_short_ids: bool) -> None:
    assert known_mends(base_url, upstream_id).has_short_ids is has_short_ids
