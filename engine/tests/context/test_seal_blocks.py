"""Cutting a conversation into blocks, and where its tail begins."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.context.blocks import (
    SealedBlock,
    SpokenMessage,
    block_hash,
    exchanges,
    render,
    runs,
    tail_start,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
ROLES = [
    "human",
    "hide_human",
    "human_later",
    "assistant",
    "system",
    "hide_system",
    "file",
    "tool_call",
    "tool",
    "knowledge",
]


def spoken(
    number: int, role: str, content: str = "text", tokens: int = 10, label: str = ""
) -> SpokenMessage:
    return SpokenMessage(
        str(number), role, content, START + timedelta(minutes=number), tokens, label
    )


def conversation(*roles: str) -> list[SpokenMessage]:
    return [spoken(number, role) for number, role in enumerate(roles)]


def ids(groups: Iterable[list[SpokenMessage]]) -> list[list[str]]:
    return [[message.id for message in group] for group in groups]


histories = st.lists(st.tuples(st.sampled_from(ROLES), st.integers(0, 60)), max_size=60).map(
    lambda rows: [spoken(n, role, tokens=tokens) for n, (role, tokens) in enumerate(rows)]
)


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ((), []),
        (("human", "assistant"), [["0", "1"]]),
        (("human", "assistant", "human", "assistant"), [["0", "1"], ["2", "3"]]),
        (("assistant", "human", "assistant"), [["0", "1", "2"]]),
        (("human", "assistant", "file", "human"), [["0", "1"], ["2", "3"]]),
        (("human", "assistant", "system", "human_later", "human"), [["0", "1"], ["2", "3", "4"]]),
        (("human", "tool_call", "tool", "assistant", "human"), [["0", "1", "2", "3"], ["4"]]),
        (("human", "human"), [["0"], ["1"]]),
        (("file", "file"), [["0", "1"]]),
    ],
)
def test_an_exchange_is_a_question_with_what_stands_before_it_for_it(roles, expected):
    assert ids(exchanges(conversation(*roles))) == expected


@given(histories)
def test_exchanges_hold_every_message_once_and_in_order(history):
    assert [m for exchange in exchanges(history) for m in exchange] == history


@given(histories, st.integers(1, 200))
def test_runs_are_a_prefix_of_whole_exchanges_and_never_hold_the_last(history, block_tokens):
    sealed = list(runs(history, block_tokens=block_tokens))
    flat = [message for run in sealed for message in run]
    whole = list(exchanges(history))
    assert flat == history[: len(flat)]
    ends = [sum(map(len, whole[:n])) for n in range(len(whole))]
    assert len(flat) in ends or not whole
    assert all(sum(m.tokens for m in run) >= block_tokens for run in sealed)


@given(histories, histories, st.integers(1, 200))
def test_what_follows_does_not_change_where_earlier_blocks_end(history, more, block_tokens):
    longer = history + [spoken(1_000 + n, m.role, tokens=m.tokens) for n, m in enumerate(more)]
    short = ids(runs(history, block_tokens=block_tokens))
    assert ids(runs(longer, block_tokens=block_tokens))[: len(short)] == short


def test_a_block_says_who_said_what_without_calls_and_with_short_results():
    text = render(
        [
            spoken(1, "human", " Where is it? "),
            spoken(2, "tool_call", "", label="find"),
            spoken(3, "tool", "x" * 700, label="find"),
            spoken(4, "assistant", "Here."),
            spoken(5, "file", "", label="map.png"),
            spoken(6, "knowledge", "passages"),
        ]
    )
    lines = text.split("\n")
    assert lines[0] == "User: Where is it?"
    assert lines[1].startswith("find returned: xxx")
    assert lines[1].endswith("[… 100 characters left out …]")
    assert lines[2:] == ["Assistant: Here.", "File: map.png"]


def test_the_hash_depends_on_what_came_before_and_on_every_message():
    run = [spoken(1, "human", "a"), spoken(2, "assistant", "b")]
    known = block_hash("", run)
    assert block_hash("", run) == known
    assert block_hash("x", run) != known
    assert block_hash("", run[:1]) != known
    assert block_hash("", [run[0], spoken(2, "assistant", "c")]) != known
    assert len(known) == 64


def chain(*sizes: int) -> list[SealedBlock]:
    blocks, before = [], 0
    for number, size in enumerate(sizes):
        blocks.append(SealedBlock(number * 4, number * 4 + 3, before, size))
        before += size
    return blocks


@given(st.lists(st.integers(50, 900), max_size=60), st.integers(1_000, 5_000))
def test_the_tail_begins_at_a_block_and_holds_half_to_all_of_its_limit(sizes, limit):
    blocks = chain(*sizes)
    start = tail_start(blocks, limit_tokens=limit)
    assert start in {0, *(block.first_position for block in blocks)}
    tokens = sum(block.tokens for block in blocks if block.first_position >= start)
    assert tokens <= limit
    if start:
        assert tokens >= limit // 2 - max(sizes)


@given(st.lists(st.integers(50, 900), min_size=2, max_size=60), st.integers(1_000, 5_000))
def test_the_tail_only_moves_forward_and_rarely(sizes, limit):
    starts = [
        tail_start(chain(*sizes[:count]), limit_tokens=limit) for count in range(1, len(sizes) + 1)
    ]
    assert starts == sorted(starts)
    moves = sum(one != other for one, other in pairwise(starts))
    assert moves <= sum(sizes) // (limit // 2) + 1


@given(st.lists(st.integers(50, 900), min_size=1, max_size=60), st.integers(1_000, 5_000))
def test_the_newest_blocks_are_enough_to_know_where_the_tail_begins(sizes, limit):
    blocks = chain(*sizes)
    newest = next(
        blocks[n:]
        for n in reversed(range(len(blocks)))
        if n == 0 or blocks[-1].tokens_through - blocks[n].tokens_before >= limit
    )
    assert tail_start(newest, limit_tokens=limit) == tail_start(blocks, limit_tokens=limit)


def test_without_blocks_the_tail_is_everything():
    assert tail_start([], limit_tokens=1_000) == 0
