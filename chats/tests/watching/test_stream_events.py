"""Test GET turns/{id}/events/ in one process: replay, resume from any number, snapshots."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import TypeAdapter

from amber.lib import redis as amber_redis
from amber.lib.rest.drain import Drain
from amber.lib.workers.leases import StopReason
from chats.events import viewers
from chats.events.stream import events_key
from chats.messages.turn_messages import messages_of_turn
from chats.models import Turn
from chats.services import cancel_turn, delete_chat
from chats.streaming import stream_view
from chats.streaming.stream_view import _block
from chats.streaming.turn_events import turn_events
from chats.tests.event_streams import Sse, read_sse, stream_of
from chats.tests.rows import of_turn
from chats.tests.runs import ask, marker, run, running, text_of
from engine.events import AnyEvent, Event, Transcript, fold
from tests.fixtures.personas import Persona, api
from tools.calling.registry import register_tool

pytestmark = pytest.mark.django_db(transaction=True)

_EVENT: TypeAdapter[Event] = TypeAdapter(AnyEvent)


@pytest.fixture(autouse=True)
def one_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.calling.registry._tools", {})

    @register_tool
    def weather() -> str:
        """Tells the weather."""
        return "Rain."


@pytest.fixture
def ended(alice: Persona, new_model: Any) -> Turn:
    """Return a turn with a tool round that is over."""
    new_model()
    turn: Turn = ask(alice, content=marker("weather", {}, tokens=40))
    assert run(turn) == "completed"
    return turn


def watch(persona: Persona, turn: Turn, after: int | None = None) -> list[Sse]:
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    response = api(persona).get(of_turn(turn, "events/"), headers=headers)
    assert response.status_code == 200
    return read_sse(response)


def seen(events: list[Sse]) -> Transcript:
    return fold(_EVENT.validate_python(data) for _, _, data in events)


def names(events: list[Sse]) -> list[str]:
    return [name for _, name, _ in events]


def key_of(turn: Turn) -> Any:
    return events_key(turn.organization_id, turn.pk)


def lose(turn: Turn, numbers: range) -> None:
    """Make Redis lose these events."""
    for number in numbers:
        amber_redis.client().xdel(key_of(turn), f"{number}-0")


def assert_complete(turn: Turn, events: list[Sse]) -> None:
    known = seen(events)
    assert known.messages == messages_of_turn(turn)
    assert (known.text, known.ended) == ({}, f"turn.{turn.status}")
    numbers = [number for number, _, _ in events]
    assert numbers == sorted(set(numbers)), "an event came twice or out of order"


def test_replays_everything(alice, ended):
    events = watch(alice, ended)
    assert [data for _, _, data in events] == stream_of(ended)
    assert [number for number, _, _ in events] == [data["seq"] for _, _, data in events]
    assert [name for _, name, _ in events] == [data["event"] for _, _, data in events]
    assert_complete(ended, events)


def test_goes_on_from_any_event(alice, ended):
    everything = watch(alice, ended)
    for place, (number, _, _) in enumerate(everything[:-1]):
        rest = watch(alice, ended, after=number)
        assert rest == everything[place + 1 :]


def test_whoever_has_seen_the_end_gets_nothing_new(alice, ended):
    known = messages_of_turn(ended)
    events = watch(alice, ended, after=ended.seq)
    assert [name for name in names(events) if name == "text.delta"] == []
    assert all(number >= ended.seq for number, _, _ in events) or seen(events).messages == known


def test_a_lost_stream_is_made_up_for_by_a_snapshot(alice, ended):
    amber_redis.client().delete(key_of(ended))
    events = watch(alice, ended)
    assert names(events) == ["turn.snapshot", "turn.completed"]
    assert_complete(ended, events)
    assert events[-1][0] == ended.seq


def test_a_stream_that_lost_its_beginning_too(alice, ended):
    lose(ended, range(1, 4))
    events = watch(alice, ended)
    assert names(events)[0] == "turn.snapshot"
    assert_complete(ended, events)


@pytest.mark.parametrize("after", [None, 1])
def test_a_hole_is_filled_by_a_snapshot(alice, ended, after):
    everything = watch(alice, ended)
    lose(ended, range(3, 5))
    events = watch(alice, ended, after=after)
    assert "turn.snapshot" in names(events)
    before = [event for event in everything if after is not None and event[0] <= after]
    assert_complete(ended, [*before, *events])


def test_an_end_that_never_reached_redis_is_told_from_postgres(alice, ended):
    """The worker died between its commit and its last event."""
    lose(ended, range(ended.seq, ended.seq + 1))
    assert_complete(ended, watch(alice, ended))


def test_a_number_from_the_future_ends_too(alice, ended):
    events = watch(alice, ended, after=ended.seq + 1_000)
    assert names(events)[-1:] in ([], ["turn.completed"])


def test_a_turn_cancelled_before_it_ran_ends_its_stream(alice, new_model):
    new_model()
    turn = ask(alice)
    response = api(alice).get(of_turn(turn, "events/"))
    cancel_turn(turn)
    turn.refresh_from_db()
    assert_complete(turn, read_sse(response))


def test_a_chat_deleted_meanwhile_ends_its_stream(alice, new_model):
    new_model()
    turn = ask(alice)
    response = api(alice).get(of_turn(turn, "events/"))
    delete_chat(turn.chat)
    assert read_sse(response) == []


def test_follows_a_turn_that_runs(alice, new_model):
    new_model("fake-hang-mid")
    turn = ask(alice, "fake-hang-mid")
    with running(turn) as this:
        this.wait_for(lambda: text_of(turn))
        response = api(alice).get(of_turn(turn, "events/"))
        this.stop(StopReason.CANCELLED)
        events = read_sse(response)
    assert names(events)[0] == "turn.started"
    assert names(events)[-1] == "turn.cancelled"
    assert_complete(turn, events)


def test_two_viewers_see_the_same(alice, ended):
    assert watch(alice, ended) == watch(alice, ended)


def test_a_heartbeat_comes_while_nothing_happens(alice, new_model, settings):
    settings.AMBER_STREAM_HEARTBEAT_SECONDS = 0.2
    new_model()
    turn = ask(alice)
    response: Any = api(alice).get(of_turn(turn, "events/"))

    async def first() -> bytes:
        try:
            async with asyncio.timeout(20):
                return bytes(await anext(aiter(response.streaming_content)))
        finally:
            await amber_redis.close_async_clients()

    assert asyncio.run(first()) == b": heartbeat\n\n"


def test_a_viewer_of_a_waiting_turn_is_told_its_place_without_a_number(
    alice, new_model, monkeypatch
):
    monkeypatch.setattr("chats.streaming.turn_events.QUEUE_SECONDS", 0.05)
    new_model()
    turn = ask(alice)

    async def first_events() -> list[Any]:
        told = []
        async with aclosing(turn_events(turn, viewed_by=alice.principal)) as events:
            async for event in events:
                told.append(event)
                if event is not None:
                    return told
        return told

    *beats, event = asyncio.run(first_events())
    assert not any(beats)
    assert (event.seq, event.name) == (0, "queue.position")
    assert b'"position":1' in event.data.replace(b" ", b"")
    assert _block(event).startswith(b"event: queue.position\ndata: "), (
        "no id: whoever resumes has missed nothing"
    )


@pytest.mark.parametrize("is_resumed", [True, False])
def test_whoever_knows_the_address_parts_when_the_process_stops(
    alice, new_model, monkeypatch, is_resumed
):
    """A POST's viewer has not been told the turn yet: nobody could resume, so the stream goes on."""
    new_model()
    turn = ask(alice)
    fresh = Drain()
    for module in (stream_view, viewers):
        monkeypatch.setattr(module, "drain", fresh)

    async def watch_until_it_stops() -> bool:
        sent: Any = stream_view._bytes(turn, 0, None, is_resumed)
        first: asyncio.Future[bytes] = asyncio.ensure_future(anext(sent))
        await asyncio.sleep(0)  # it is listed before anything is awaited
        fresh.close_streams()
        assert await asyncio.wait_for(first, 30) == stream_view.HEARTBEAT
        following: asyncio.Future[bytes] = asyncio.ensure_future(anext(sent, b"the end"))
        done, _ = await asyncio.wait([following], timeout=0.5)
        following.cancel()
        await asyncio.wait([following])
        await sent.aclose()
        await amber_redis.close_async_clients()
        return bool(done)

    assert asyncio.run(watch_until_it_stops()) is is_resumed
