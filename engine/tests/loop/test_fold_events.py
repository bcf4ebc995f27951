from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from engine.events import (
    EVENT_TYPES,
    LAST_EVENTS,
    AnyEvent,
    Event,
    MessageStored,
    QueuePosition,
    ReasoningDelta,
    SourceAdded,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnIncomplete,
    TurnRestarted,
    TurnSnapshot,
    TurnStarted,
    TurnWaiting,
    fold,
)

HEAD: dict[str, Any] = {"seq": 7, "turn_id": "t"}
ADAPTER: TypeAdapter[Event] = TypeAdapter(AnyEvent)

EXAMPLES: list[Event] = [
    TurnStarted(**HEAD, turn={"id": "t"}, message={"id": "q"}),
    TurnStarted(**HEAD, turn={"id": "t"}),
    QueuePosition(**HEAD, position=3, reason="workers_busy"),
    TurnRestarted(**HEAD, attempt=2, step=1),
    TextDelta(**HEAD, step=1, text="你好 \u2028"),
    ReasoningDelta(**HEAD, step=1, text="Hm\n"),
    ToolStarted(**HEAD, step=1, call_id="c", name="clock", arguments="{not json"),
    ToolFinished(**HEAD, step=1, call_id="c", ok=False, content="no"),
    SourceAdded(**HEAD, step=1, passage={"number": 1}),
    MessageStored(**HEAD, step=1, message={"id": "m", "role": "assistant"}),
    TurnWaiting(**HEAD, calls=[{"call_id": "c"}]),
    TurnCompleted(**HEAD, usage={"total_tokens": 3}, finish_reason="stop"),
    TurnIncomplete(**HEAD, code="provider_lost", message="It broke off."),
    TurnFailed(**HEAD, code="internal", message="It failed.", retryable=True),
    TurnCancelled(**HEAD),
    TurnSnapshot(**HEAD, messages=[{"id": "m"}], text={2: "so far"}),
]


def stored(id: str, *, step: int = 1, role: str = "assistant", content: str = "") -> MessageStored:
    return MessageStored(**HEAD, step=step, message={"id": id, "role": role, "content": content})


def delta(text: str, *, step: int = 1) -> TextDelta:
    return TextDelta(**HEAD, step=step, text=text)


def thought(text: str, *, step: int = 1) -> ReasoningDelta:
    return ReasoningDelta(**HEAD, step=step, text=text)


def test_reasoning_stands_beside_the_text_until_its_step_is_stored():
    events: list[Event] = [thought("H"), thought("m."), delta("Yes"), thought("So", step=2)]
    assert fold(events).reasoning == {1: "Hm.", 2: "So"}
    stored = MessageStored(**HEAD, step=1, message={"id": "m", "role": "tool_call"})
    assert fold([*events, stored]).reasoning == {2: "So"}


def test_reasoning_is_taken_back_replaced_and_gone_with_its_turn():
    events = [thought("Hm."), thought("So", step=2)]
    assert fold([*events, TurnRestarted(**HEAD, attempt=1, step=2)]).reasoning == {1: "Hm."}
    snapshot = TurnSnapshot(**HEAD, messages=[], text={}, reasoning={3: "Oh"})
    assert fold([*events, snapshot]).reasoning == {3: "Oh"}
    assert fold([*events, TurnCancelled(**HEAD)]).reasoning == {}


def test_there_is_an_example_of_every_event():
    assert {event.event for event in EXAMPLES} == set(EVENT_TYPES)


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.event)
def test_comes_back_from_the_wire_as_it_was(event):
    assert ADAPTER.validate_json(ADAPTER.dump_json(event)) == event
    assert EVENT_TYPES[event.event].model_validate(event.model_dump()) == event


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.event)
def test_the_set_is_closed(event):
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(event.model_dump() | {"more": 1})
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(event.model_dump() | {"event": "tool.invented"})


def test_a_stream_ends_with_the_turn():
    assert {
        "turn.completed",
        "turn.incomplete",
        "turn.failed",
        "turn.cancelled",
    } == LAST_EVENTS


def test_text_gathers_until_its_message_is_stored():
    seen = fold([delta("It is "), delta("noon.")])
    assert (seen.text, seen.messages) == ({1: "It is noon."}, [])
    seen = fold([delta("It is "), delta("noon."), stored("m", content="It is noon.")])
    assert seen.text == {}
    assert [message["content"] for message in seen.messages] == ["It is noon."]


def test_a_call_takes_its_text_with_it_and_a_result_does_not():
    events: list[Event] = [
        delta("A moment."),
        stored("c", role="tool_call"),
        stored("r", role="tool"),
    ]
    assert fold(events).text == {}
    assert fold([delta("next", step=2), stored("r", role="tool")]).text == {2: "next"}


def test_a_message_told_twice_is_there_once():
    seen = fold([stored("a", content="old"), stored("b", step=2), stored("a", content="new")])
    assert sorted(message["id"] for message in seen.messages) == ["a", "b"]


def test_a_restart_takes_back_only_what_was_not_stored():
    seen = fold(
        [
            stored("c", role="tool_call"),
            delta("half of", step=2),
            TurnRestarted(**HEAD, attempt=2, step=2),
            delta("all", step=2),
        ]
    )
    assert seen.text == {2: "all"}
    assert [message["id"] for message in seen.messages] == ["c"]


def test_a_snapshot_replaces_everything():
    snapshot = TurnSnapshot(**HEAD, messages=[{"id": "x", "role": "assistant"}], text={3: "so far"})
    seen = fold([stored("a"), delta("gone"), snapshot, delta(" and on", step=3)])
    assert [message["id"] for message in seen.messages] == ["x"]
    assert seen.text == {3: "so far and on"}


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.event)
def test_knows_how_it_ended(event):
    events: list[Event] = [event]
    assert fold(events).ended == (event.event if event.event in LAST_EVENTS else None)


ids = st.sampled_from("abcd")
steps = st.integers(1, 3)
deltas = st.builds(delta, st.text(max_size=5), step=steps)
storings = st.builds(
    stored, ids, step=steps, role=st.sampled_from(["assistant", "tool_call", "tool"])
)
restarts = st.builds(
    TurnRestarted, **{k: st.just(v) for k, v in HEAD.items()}, attempt=st.just(2), step=steps
)
histories = st.lists(deltas | storings | restarts, max_size=20)


@given(histories)
def test_no_message_is_there_twice(events):
    kept = [message["id"] for message in fold(events).messages]
    assert len(kept) == len(set(kept))
    assert set(kept) == {event.message["id"] for event in events if event.event == "message.stored"}


@given(histories, histories)
def test_a_snapshot_of_what_was_seen_goes_on_as_if_nothing_was_missed(before, after):
    missed = fold(before)
    snapshot = TurnSnapshot(**HEAD, messages=missed.messages, text=missed.text)
    assert fold([snapshot, *after]) == fold([*before, *after])


@given(histories, steps, histories)
def test_after_a_restart_the_text_of_the_broken_step_does_not_count(before, step, after):
    """Whatever was shown of it, only what comes after the restart is left."""
    restart = TurnRestarted(**HEAD, attempt=2, step=step)
    with_text = fold([*before, delta("shown in vain", step=step), restart, *after])
    assert with_text == fold([*before, restart, *after])


@given(st.lists(st.text(max_size=5), max_size=10))
def test_text_is_the_same_however_it_was_cut(pieces):
    whole = fold([delta("".join(pieces))]).text
    assert fold([delta(piece) for piece in pieces] or [delta("")]).text == whole


@given(histories)
def test_does_not_change_what_it_reads(events):
    before = [event.model_copy(deep=True) for event in events]
    fold(events)
    assert events == before
