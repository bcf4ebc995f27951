"""Test that blocks are cut into messages, long ones into parts, and shown in order."""

from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.context.blocks import SpokenMessage, render
from engine.context.pieces import (
    FIELDS,
    LEAST_PIECE_CHARS,
    OMISSION,
    PIECE_CHARS,
    WORDS_AT,
    MessagePiece,
    cut_run,
    date_words_of,
    read_pieces,
    show,
    store_pieces,
    whole_piece,
)

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def said(*contents: str, apart: timedelta = timedelta(minutes=1)) -> list[SpokenMessage]:
    roles = ("human", "assistant")
    return [
        SpokenMessage(str(number), roles[number % 2], content, START + number * apart, 1)
        for number, content in enumerate(contents)
    ]


def cut(run: list[SpokenMessage]) -> list[MessagePiece]:
    return cut_run(run, lambda text: len(text.split()))


def show_of(content: str, pieces: list[MessagePiece], zone: tzinfo = UTC) -> str:
    return show([(piece, content[piece.start : piece.end]) for piece in pieces], zone)


texts = st.text(st.sampled_from("abc .!\n。天气"), min_size=1, max_size=3_000)


@settings(deadline=None)  # the first one loads the tokens
@given(st.lists(texts, max_size=4))
def test_pieces_are_the_text_in_order_and_no_longer_than_allowed(contents):
    run = said(*contents)
    content = render(run)
    pieces = cut(run)
    for one, other in pairwise(pieces):
        assert one.end <= other.start
        assert one.message <= other.message
    assert all(0 < p.end - p.start <= PIECE_CHARS + LEAST_PIECE_CHARS for p in pieces)
    gaps = content
    for piece in reversed(pieces):
        gaps = gaps[: piece.start] + gaps[piece.end :]
    assert not gaps.strip()
    if pieces:
        assert show_of(content, pieces).split() == content.split()


@settings(deadline=None)
@given(st.lists(texts, max_size=4))
def test_what_lies_between_pieces_that_follow_each_other_is_shown_as_it_was_said(contents):
    run = said(*contents)
    content = render(run)
    pieces = cut(run)
    for one, other in pairwise(pieces):
        if other.start <= one.end + 1:
            assert show_of(content, [one, other]) == content[one.start : other.end]
    if all(other.start <= one.end + 1 for one, other in pairwise(pieces)):
        assert show_of(content, pieces) == content


def test_what_is_left_out_between_pieces_is_marked():
    run = said("one", "two", "three")
    first, _, third = cut(run)
    assert show_of(render(run), [third, first]) == f"User: one\n{OMISSION}\nUser: three"


def test_another_time_is_told_in_the_readers_zone():
    run = said("one", "two", apart=timedelta(days=1))
    shown = show_of(render(run), cut(run), ZoneInfo("Asia/Shanghai"))
    assert shown == "User: one\n(2026-03-02 17:00)\nAssistant: two"


def test_calls_have_no_piece_and_the_others_keep_their_places():
    call = SpokenMessage("1", "tool_call", "", START, 1, "find")
    run = [said("one")[0], call, said("", "two")[1]]
    assert [piece.message for piece in cut(run)] == [0, 2]


def test_a_piece_survives_being_stored():
    pieces = cut(said("one", "two and three"))
    stored = store_pieces(pieces)
    assert read_pieces(stored) == pieces
    assert stored[WORDS_AT::FIELDS] == [2, 4]
    assert pieces[0].said_at == START


def test_a_block_that_was_never_cut_is_one_piece():
    piece = whole_piece(block_tokens=40, from_at=START)
    assert show_of("some text", [piece]) == "some text"
    assert piece.tokens == 40


def test_a_piece_is_found_by_its_day_and_by_the_dates_it_tells():
    words = date_words_of("We left yesterday.", START)
    assert {"@2026-03-01", "@03", "@2026", "@2026-02-28"} <= words
