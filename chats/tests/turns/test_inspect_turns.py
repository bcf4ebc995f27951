"""Test the pictures of turns: what is drawn, also of old records, and that no page shows texts."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import translation
from hypothesis import given, settings
from hypothesis import strategies as st

from chats.inspection.context_bar import draw_context
from chats.inspection.quality import draw_quality
from chats.inspection.timeline import CallMark, draw_timeline, write_ms
from chats.models import Turn
from chats.tests.rows import new_chat, new_turn
from chats.tests.runs import ask_in, marker, run
from engine.events import TurnStatus

BEGIN = datetime(2026, 1, 2, 12, tzinfo=UTC)
MAX_STATEMENTS = 12
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(["tokens", "left_out", "messages", "tools", "blocks", "limit", "system"])


def page_of(turn: Any) -> str:
    return reverse("admin:chats_turn_change", args=[turn.pk])


def at(ms: int) -> datetime:
    return BEGIN + timedelta(milliseconds=ms)


def turn_with(**fields: Any) -> Turn:
    return Turn(created_at=BEGIN, **{"status": TurnStatus.COMPLETED} | fields)


def test_the_bar_holds_the_parts_in_the_order_of_the_request():
    manifest = {
        "tokens": {"limit": 1_000, "messages": 60, "system": 20, "tools": 100, "blocks": 0},
        "system_prompts": ["Be brief."],
        "messages": [{}, {}, {}],
        "left_out": [
            {"kind": "block", "id": "1", "reason": "No budget."},
            {"kind": "block", "id": "2", "reason": "No budget."},
            {"kind": "messages", "count": 7, "reason": "No room."},
            {"kind": "earlier messages", "reason": "Too old."},
        ],
    }
    bar = draw_context(manifest, {"completion_tokens": 20})
    assert bar is not None
    drawn = [(part.name, part.tokens, part.count, part.x, part.width) for part in bar.parts]
    assert drawn == [
        ("system", 20, 1, "0.000%", "10.000%"),
        ("tools", 100, None, "10.000%", "50.000%"),
        ("messages", 60, 3, "60.000%", "30.000%"),
        ("reply", 20, None, "90.000%", "10.000%"),
    ]
    assert (bar.prompt_tokens, bar.limit_tokens, bar.filled) == (80, 1_000, "8.000%")
    assert [(each.kind, each.count) for each in bar.left_out] == [
        ("Older part of the chat", 2),
        ("Messages", 7),
        ("Earlier messages", None),
    ]


@settings(max_examples=80, deadline=None)
@given(st.none() | st.dictionaries(NAMES, JSON | st.dictionaries(NAMES, JSON)), JSON)
def test_a_bar_of_any_record_stays_within_its_frame(manifest, usage):
    bar = draw_context(manifest, usage if isinstance(usage, dict) else None)
    if bar is None:
        return
    ends = [float(part.x[:-1]) + float(part.width[:-1]) for part in bar.parts]
    assert all(end <= 100.01 for end in ends)
    assert not ends or ends[-1] == pytest.approx(100, abs=0.01)
    assert 0 <= float(bar.filled[:-1]) <= 100


def test_the_time_line_holds_waiting_words_and_tools():
    turn = turn_with(started_at=at(100), first_token_at=at(1_100), ended_at=at(2_000))
    calls = [CallMark("tool_call", "c", "calculate", at(400)), CallMark("tool", "c", "", at(600))]
    line = draw_timeline(turn, calls)
    assert [(span.kind, span.start_ms, span.took_ms, span.x) for span in line.spans] == [
        ("queued", 0, 100, "0.000%"),
        ("thinking", 100, 1_000, "5.000%"),
        ("tool", 400, 200, "20.000%"),
        ("answer", 1_100, 900, "55.000%"),
    ]
    assert line.total == "2.0 s"
    assert not any(span.is_open for span in line.spans)


def test_what_has_no_end_is_drawn_up_to_now():
    turn = turn_with(status=TurnStatus.RUNNING, started_at=at(100))
    line = draw_timeline(turn, [CallMark("tool_call", "c", "wait", at(300))], now=at(1_000))
    assert [(span.kind, span.took_ms, span.is_open) for span in line.spans] == [
        ("queued", 100, False),
        ("thinking", 900, True),
        ("tool", 700, True),
    ]


@settings(max_examples=60, deadline=None)
@given(
    *[st.none() | st.integers(-5_000, 5_000)] * 3, st.lists(st.integers(-900, 9_000), max_size=4)
)
def test_spans_stay_within_the_time_line_whatever_the_clocks_say(started, first, ended, calls):
    times = {"started_at": started, "first_token_at": first, "ended_at": ended}
    turn = turn_with(**{name: at(ms) for name, ms in times.items() if ms is not None})
    marks = [CallMark("tool_call", str(ms), "f", at(ms)) for ms in calls]
    for span in draw_timeline(turn, marks, now=at(500)).spans:
        x, width = float(span.x[:-1]), float(span.width[:-1])
        assert 0 <= x <= 100
        assert 0 <= width <= 100.01 - x


@pytest.mark.parametrize(
    ("ms", "words"), [(0, "0 ms"), (999, "999 ms"), (2_449, "2.4 s"), (200_000, "3 min 20 s")]
)
def test_durations_are_written_for_people(ms, words):
    assert write_ms(ms) == words


def test_a_duration_has_the_comma_of_the_language():
    with translation.override("de"):
        assert write_ms(2_449) == "2,4 s"


@pytest.mark.django_db(transaction=True)
def test_a_turn_is_drawn_without_what_was_said(
    operator, alice, assistant, new_model, django_assert_max_num_queries
):
    new_model("fake-model", default=True)
    assistant.prompt = "A secret prompt."
    assistant.save()
    chat = new_chat(alice, assistant=assistant, name="Pumps")
    turn = ask_in(chat, alice, f"A secret question. {marker('calculate', {'expression': '2+3'})}")
    assert run(turn) == TurnStatus.COMPLETED
    operator.get(page_of(turn))
    with django_assert_max_num_queries(MAX_STATEMENTS):
        page = operator.get(page_of(turn)).content.decode()
    for words in ("System prompt", "Latest messages", "Reply", "Queued", "Tool calculate"):
        assert words in page
    assert len(re.findall('<rect class="part-', page.partition("</svg>")[0] + page)) >= 4
    assert "secret" not in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    "manifest",
    [
        None,
        {},
        {"model": "old", "messages": [{"id": "1", "role": "human", "tokens": 3}]},
        {"tokens": {"system": 5}, "passages": [{"number": 1}], "blocks": [{}], "tools": [{}]},
        {"tokens": [], "scene": None, "cacheable_share": None, "left_out": None},
    ],
)
def test_old_turns_are_drawn_as_far_as_they_were_recorded(operator, alice, manifest):
    turn = new_turn(new_chat(alice), manifest=manifest, status=TurnStatus.FAILED, usage={})
    assert operator.get(page_of(turn)).status_code == 200


@pytest.mark.django_db
def test_a_failed_turn_says_why(operator, alice):
    error = {"code": "provider_auth", "message": "The provider refused."}
    turn = new_turn(new_chat(alice), status=TurnStatus.FAILED, error=error)
    assert "The provider refused. · provider_auth" in operator.get(page_of(turn)).content.decode()


@pytest.mark.django_db
def test_an_assistants_page_says_how_its_answers_fare(alice, assistant):
    chat = new_chat(alice, assistant=assistant, name="Pumps")
    for status in (TurnStatus.COMPLETED, TurnStatus.COMPLETED, TurnStatus.FAILED):
        turn = new_turn(chat, status=status, assistant=assistant)
        later = turn.created_at + timedelta(seconds=2)
        Turn.objects.filter(pk=turn.pk).update(ended_at=later, first_token_at=later)
    drawn = re.sub(r"\s+", " ", draw_quality(assistant))
    assert "<dt>Answered</dt><dd>2</dd>" in drawn
    assert "<dt>Failed</dt><dd>1</dd>" in drawn
    assert "<dt>Whole answer, median</dt><dd>2.0 s</dd>" in drawn
