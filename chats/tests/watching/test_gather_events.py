"""Test what the hub reads together, and what it does not hold up."""

import asyncio
from collections.abc import Iterator
from uuid import UUID

import pytest
import redis

from amber.lib import redis as amber_redis
from chats.events import viewers
from chats.events.stream import events_key
from chats.events.viewers import Hub, StreamEvent, Viewer
from chats.tests.event_streams import READ_SECONDS, run_on_new_loop

ORGANIZATION = UUID(int=1)
SPEAKING, STARTING = UUID(int=11), UUID(int=12)


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Return what writes an event of a turn; the pause of gathering is longer than the test."""
    monkeypatch.setattr(viewers, "_GATHER_SECONDS", 2 * READ_SECONDS)
    monkeypatch.setattr(viewers, "_MANY", 1)
    monkeypatch.setattr(amber_redis, "LONGEST_WAIT_SECONDS", 3 * READ_SECONDS)
    keys = [events_key(ORGANIZATION, turn) for turn in (SPEAKING, STARTING)]
    client: redis.Redis = amber_redis.client()
    client.delete(*keys)

    def xadd(turn: UUID, seq: int, name: str) -> None:
        client.xadd(events_key(ORGANIZATION, turn), {"e": name, "d": "{}"}, id=f"{seq}-0")

    yield xadd
    client.delete(*keys)


def follow(hub: Hub, turn: UUID) -> Viewer:
    viewer = Viewer(turn, events_key(ORGANIZATION, turn))
    hub.add(viewer)
    return viewer


async def told(viewer: Viewer) -> StreamEvent:
    event = await viewer.queue.get()
    assert event is not None
    return event


@pytest.mark.parametrize("first_words", ["text.delta", "reasoning.delta"])
def test_first_words_do_not_wait_for_what_is_read_together(write, first_words, monkeypatch):
    monkeypatch.setattr(viewers, "_MANY", 1)

    async def work() -> None:
        hub = Hub()
        speaking, starting = follow(hub, SPEAKING), follow(hub, STARTING)
        write(SPEAKING, 1, "text.delta")
        assert (await told(speaking)).seq == 1

        write(SPEAKING, 2, "text.delta")
        write(STARTING, 1, "turn.started")
        assert (await told(starting)).name == "turn.started"
        write(STARTING, 2, first_words)
        assert (await told(starting)).name == first_words
        write(STARTING, 3, first_words)
        await asyncio.sleep(0.2)
        assert speaking.queue.empty()
        assert starting.queue.empty()

    run_on_new_loop(work())


def test_a_stream_among_few_hardly_waits(write, monkeypatch):
    monkeypatch.setattr(viewers, "_MANY", 1_000_000)

    async def work() -> None:
        viewer = follow(Hub(), SPEAKING)
        for seq in (1, 2, 3):
            write(SPEAKING, seq, "text.delta")
            assert (await told(viewer)).seq == seq

    run_on_new_loop(work())
