"""The time prefix: written before messages, taken off a model's answer."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.history.sent_at import SentAtStripper, sent_at, stamp, time_zone

AT = datetime(2024, 3, 21, 3, 14, 1, 999_999, tzinfo=UTC)
PREFIX = "[Sent at 2024-03-21 03:14:01]"


def strip(*pieces: str) -> str:
    stripper = SentAtStripper()
    return "".join([*map(stripper.feed, pieces), stripper.flush()])


def test_a_stamp_is_the_wall_clock_of_the_zone_without_fractions():
    assert stamp(AT, time_zone("UTC")) == "2024-03-21 03:14:01"
    assert stamp(AT, time_zone("America/New_York")) == "2024-03-20 23:14:01"
    assert stamp(AT.astimezone(timezone(timedelta(hours=9))), time_zone("UTC"))[11:] == "03:14:01"


@pytest.mark.parametrize(
    "at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)]
)
@pytest.mark.parametrize("name", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_the_first_and_the_last_day_of_the_calendar_have_a_stamp_in_every_zone(at, name):
    assert int(stamp(at, time_zone(name))[:4]) == at.year


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "America", "a\0b"])
def test_a_wrong_zone_is_utc(name):
    assert stamp(AT, time_zone(name)) == "2024-03-21 03:14:01"


def test_the_prefix_is_a_line_or_nothing():
    assert sent_at(AT, UTC) == f"{PREFIX}\n"
    assert sent_at(None, UTC) == ""


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (f"{PREFIX}\nHello", "Hello"),
        (f"{PREFIX} Hello", "Hello"),
        (f"{PREFIX}Hello", "Hello"),
        (f"{PREFIX}\r\n\r\nHello", "Hello"),
        (f"\n {PREFIX}\nHello", "Hello"),
        (f"{PREFIX}\n{PREFIX}\nHello", "Hello"),
        (f"{PREFIX}\n    code", "    code"),
        ("[Sent at 2024-03-21 03:14]\nHello", "Hello"),
        ("[Sent at 2024-03-21T03:14:01Z]\nHello", "Hello"),
        (f"{PREFIX}\n", ""),
        (PREFIX, ""),
        ("", ""),
        ("Hello", "Hello"),
        ("  Hello", "  Hello"),
        (" \n", " \n"),
        ("[Sent", "[Sent"),
        ("[Sent at ", "[Sent at "),
        ("[Sent at 2024-03-21 03:14:01", "[Sent at 2024-03-21 03:14:01"),
        ("[Sent at noon] Hello", "[Sent at noon] Hello"),
        ("[1] says so", "[1] says so"),
        (f"Hello\n{PREFIX}\nthere", f"Hello\n{PREFIX}\nthere"),
        ("[Sent at 2" + "0" * 60 + "]x", "[Sent at 2" + "0" * 60 + "]x"),
    ],
)
def test_what_is_shown_does_not_depend_on_the_pieces(answer, shown):
    assert strip(answer) == shown
    assert strip(*answer) == shown


def test_ordinary_text_is_shown_at_once():
    stripper = SentAtStripper()
    assert stripper.feed("[") == ""
    assert stripper.feed("S3") == "[S3"
    assert stripper.feed("[Sent at ") == "[Sent at "
    assert stripper.flush() == ""


def test_the_first_word_after_the_prefix_is_shown_at_once():
    stripper = SentAtStripper()
    assert stripper.feed(f"{PREFIX}\n") == ""
    assert stripper.feed("Hel") == "Hel"


def test_endless_white_space_is_not_held_for_ever():
    stripper = SentAtStripper()
    assert stripper.feed(" " * 1_000) == " " * 1_000


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from([*PREFIX, PREFIX, PREFIX[:12], "\n", " ", "a"])))
def test_pieces_never_matter_and_only_the_front_is_lost(pieces):
    answer = "".join(pieces)
    shown = strip(*pieces)
    assert shown == strip(answer)
    assert answer.endswith(shown)
    if "]" not in answer:
        assert shown == answer
