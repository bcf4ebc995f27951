"""What is dropped when a history is too long, and what never is."""

from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.context.budget import BudgetError, cut_text, fit
from engine.messages import mark_produced


def message(role, content):
    return {"role": role, "content": content}


def calls(*ids):
    entry = [{"id": i, "type": "function", "function": {"name": "f", "arguments": ""}} for i in ids]
    return message("assistant", "") | {"tool_calls": entry}


def result(call_id):
    return message("tool", f"result {call_id}") | {"tool_call_id": call_id}


def one_each(_message):
    return 1


SYSTEM = message("system", "prompt")
VOLATILE = message("system", "volatile")
Q1, A1 = message("user", "q1"), message("assistant", "a1")
Q2, C2, R2, A2 = message("user", "q2"), calls("c2"), result("c2"), message("assistant", "a2")
Q3 = message("user", "q3")
CHAT = [SYSTEM, Q1, A1, Q2, C2, R2, A2, VOLATILE, Q3]


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (9, CHAT),
        (8, [SYSTEM, Q2, C2, R2, A2, VOLATILE, Q3]),
        (7, [SYSTEM, Q2, C2, R2, A2, VOLATILE, Q3]),
        (6, [SYSTEM, VOLATILE, Q3]),
        (3, [SYSTEM, VOLATILE, Q3]),
    ],
)
def test_oldest_exchanges_go_first_and_whole(limit, kept):
    fitted = fit(CHAT, limit_tokens=limit, count=one_each)
    assert fitted.messages == kept
    assert fitted.dropped == [m for m in CHAT if m not in kept]
    assert fitted.tokens == len(kept)


@pytest.mark.parametrize(
    ("limit", "kept"),
    [(5, [0, 1, 2, 3, 4]), (4, [0, 1]), (2, [0, 1])],
)
def test_what_a_tool_made_goes_with_its_round_and_is_no_question(limit, kept):
    picture = mark_produced("[image: a.png]")
    chat = [SYSTEM, Q2, C2, R2, picture]
    fitted = fit(chat, limit_tokens=limit, count=one_each)
    assert fitted.messages == [chat[n] for n in kept]


def test_what_must_stay_and_is_too_long_is_an_error():
    with pytest.raises(BudgetError) as error:
        fit(CHAT, limit_tokens=2, count=one_each)
    assert (error.value.needed_tokens, error.value.limit_tokens) == (3, 2)


def test_a_newer_exchange_that_does_not_fit_takes_the_older_ones_with_it():
    sizes: Any = {"q2": 100}
    fitted = fit(CHAT, limit_tokens=50, count=lambda m: sizes.get(m["content"], 1))
    assert fitted.messages == [SYSTEM, VOLATILE, Q3]


def test_the_last_exchange_gives_up_its_oldest_rounds_only_after_everything_older():
    chat = [SYSTEM, Q1, A1, Q3, calls("a", "b"), result("a"), result("b"), calls("c"), result("c")]
    assert fit(chat, limit_tokens=7, count=one_each).messages == [SYSTEM, *chat[3:]]
    assert fit(chat, limit_tokens=6, count=one_each).messages == [SYSTEM, Q3, *chat[7:]]
    assert fit(chat, limit_tokens=3, count=one_each).messages == [SYSTEM, Q3]


def test_a_system_message_at_the_end_stays():
    chat = [Q1, A1, Q2, A2, SYSTEM]
    assert fit(chat, limit_tokens=2, count=one_each).messages == [Q2, SYSTEM]


def test_a_system_message_before_a_question_goes_with_it():
    hint, warning = message("system", "hint"), message("system", "warning")
    chat = [SYSTEM, hint, Q1, warning, A1, hint, Q2, A2, Q3]
    fitted = fit(chat, limit_tokens=6, count=one_each)
    assert fitted.messages == [SYSTEM, hint, hint, Q2, A2, Q3]
    assert fitted.dropped == [Q1, warning, A1]


def test_a_greeting_before_the_first_question_is_the_oldest_exchange():
    assert fit([SYSTEM, A1, Q2], limit_tokens=2, count=one_each).messages == [SYSTEM, Q2]


def test_a_history_without_user_or_without_anything_is_fine():
    assert fit([], limit_tokens=0, count=one_each).messages == []
    assert fit([SYSTEM], limit_tokens=1, count=one_each).messages == [SYSTEM]
    assert fit([SYSTEM, A1, A2], limit_tokens=2, count=one_each).messages == [SYSTEM, A2]


def test_what_is_older_than_the_first_that_does_not_fit_is_not_counted():
    count = Mock(return_value=1)
    fit([SYSTEM, *[Q1, A1] * 500, Q3], limit_tokens=6, count=count)
    assert count.call_count == 8


ROUNDS = st.lists(
    st.one_of(
        st.just([A1]),
        st.just([message("system", "warning"), A1]),
        st.integers(1, 3).map(lambda n: [calls(*"abc"[:n]), *map(result, "abc"[:n])]),
    ),
    max_size=3,
).map(lambda rounds: [m for messages in rounds for m in messages])
EXCHANGES = st.tuples(st.sampled_from([[], [VOLATILE]]), ROUNDS).map(lambda e: [*e[0], Q1, *e[1]])
CHATS = st.tuples(
    st.sampled_from([[], [SYSTEM]]),
    ROUNDS,
    st.lists(EXCHANGES, min_size=1, max_size=5),
    st.sampled_from([[], [SYSTEM]]),
).map(lambda c: [*c[0], *c[1], *[m for e in c[2] for m in e], *c[3]])


@settings(deadline=None, max_examples=300)
@given(CHATS, st.data())
def test_properties(chat, data):
    sizes = [data.draw(st.integers(0, 9)) for _ in chat]
    by_id = {}
    chat = [dict(m) for m in chat]
    for m, size in zip(chat, sizes, strict=True):
        by_id[id(m)] = size
    limit = data.draw(st.integers(0, sum(sizes) + 1))
    last_user = max(n for n, m in enumerate(chat) if m["role"] == "user")
    counted = []

    def count(m):
        counted.append(id(m))
        return by_id[id(m)]

    try:
        fitted = fit(chat, limit_tokens=limit, count=count)
    except BudgetError as error:
        assert error.needed_tokens > limit
        assert error.needed_tokens <= sum(sizes)
        return
    finally:
        assert len(counted) == len(set(counted))
    kept = {id(m) for m in fitted.messages}
    assert fitted.tokens == sum(by_id[i] for i in kept) <= limit
    assert [m for m in chat if id(m) in kept] == fitted.messages
    assert [m for m in chat if id(m) not in kept] == fitted.dropped
    assert id(chat[last_user]) in kept
    assert chat[0]["role"] != "system" or id(chat[0]) in kept
    assert chat[-1]["role"] != "system" or id(chat[-1]) in kept
    for n, m in enumerate(chat):
        if m["role"] == "tool":  # kept or dropped together with the call before it
            assert (id(m) in kept) == (id(chat[n - 1]) in kept)
    if sum(sizes) <= limit:
        assert fitted.messages == chat
    again = fit(fitted.messages, limit_tokens=limit, count=count_of(by_id))
    assert again.messages == fitted.messages


def count_of(by_id):
    return lambda m: by_id[id(m)]


def test_a_text_that_fits_is_not_touched():
    assert cut_text("abc", limit_tokens=3, count=len) == "abc"


def test_a_cut_text_keeps_head_and_tail_and_says_how_much_is_missing():
    cut = cut_text("a" * 500 + "b" * 500, limit_tokens=200, count=len)
    head, note, tail = cut.split("\n")
    assert set(head) == {"a"}
    assert set(tail) == {"b"}
    assert note == f"[… {1_000 - len(head) - len(tail)} characters left out …]"
    assert 150 < len(cut) <= 200


def test_where_not_even_the_note_fits_nothing_is_left():
    assert cut_text("a" * 100, limit_tokens=5, count=len) == ""
    assert cut_text("a" * 100, limit_tokens=-1, count=len) == ""


@settings(deadline=None, max_examples=300)
@given(st.text(), st.integers(0, 80), st.sampled_from([len, lambda t: len(t.encode()) // 3]))
def test_a_cut_text_never_exceeds_its_limit(text, limit, count):
    counting = Mock(side_effect=count)
    assert count(cut_text(text * 5, limit_tokens=limit, count=counting)) <= limit
    assert counting.call_count < 40


def test_a_huge_text_is_not_counted_as_a_whole():
    counted = []

    def count(text):
        counted.append(len(text))
        return len(text) // 4

    text = "word " * 2_000_000
    cut = cut_text(text, limit_tokens=1_000, count=count)
    assert max(counted) < 40_000
    assert 3_500 < len(cut) <= 4_000
    head, note, tail = cut.split("\n")
    assert note == f"[… {len(text) - len(head) - len(tail)} characters left out …]"
