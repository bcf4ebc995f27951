"""Test that a Redis with half-open connections, or that accepts no writes, is noticed."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
import redis
from django.test import Client
from structlog.testing import capture_logs

from amber.lib import redis as amber_redis
from amber.lib.workers.leases import StopReason
from chats.events import viewers
from chats.events.stream import Publisher, control_channel, events_key
from chats.events.viewers import Hub, Viewer
from chats.running.stopping import running_turns
from chats.tests.event_streams import run_on_new_loop
from operations.maintenance import turns
from tests.e2e.kit.link import Link

ORGANIZATION, TURN = UUID(int=1), UUID(int=2)
KEY = events_key(ORGANIZATION, TURN)


@pytest.fixture
def straight() -> Iterator[redis.Redis]:
    """Return a client past the link, for an empty stream."""
    client = amber_redis.client()
    client.delete(KEY)
    yield client
    client.delete(KEY)


@pytest.fixture
def link(straight: redis.Redis, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Link]:
    """Put a link before the tests' Redis, for the code under test; waits are short."""
    monkeypatch.setattr(amber_redis, "LONGEST_WAIT_SECONDS", 1.0)
    monkeypatch.setattr(viewers, "_BLOCK_MS", 200)
    monkeypatch.setattr(turns, "_SILENCE_SECONDS", 0.2)
    url = urlsplit(settings.REDIS_URL)
    made = Link((url.hostname or "127.0.0.1", url.port or 6379))
    login = url.netloc.rpartition("@")[0]
    settings.REDIS_URL = url._replace(netloc=f"{login}@127.0.0.1:{made.port}").geturl()
    yield made
    made.close()


@contextmanager
def following(hub: Hub) -> Iterator[Viewer]:
    viewer = Viewer(TURN, KEY)
    hub.add(viewer)
    try:
        yield viewer
    finally:
        hub.remove(viewer)


async def is_told(viewer: Viewer, straight: redis.Redis, seq: int) -> None:
    """Write an event of the turn, and check that the viewer gets it."""
    straight.xadd(KEY, {"e": "text.delta", "d": "{}"}, id=f"{seq}-0")
    event = await viewer.queue.get()
    assert event is not None
    assert event.seq == seq


@pytest.fixture
def no_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep viewers from learning anything from Postgres."""
    monkeypatch.setattr(viewers, "SILENT_SECONDS", 60)
    monkeypatch.setattr(viewers, "WELCOME_SECONDS", 60)


def test_viewers_are_followed_again_after_a_half_open_connection(link, straight, no_lookups):
    async def follow() -> None:
        with following(Hub()) as viewer:
            await is_told(viewer, straight, 1)
            assert link.freeze() >= 1
            await is_told(viewer, straight, 2)

    run_on_new_loop(follow())


async def becomes(is_following: bool, hub: Hub) -> None:
    while hub.is_following is not is_following:  # noqa: ASYNC110  (time alone changes it)
        await asyncio.sleep(0.05)


def test_a_hub_that_cannot_read_says_so(link, straight, no_lookups, monkeypatch):
    monkeypatch.setattr(viewers, "ROUND_SECONDS", 1.0)

    async def follow() -> None:
        hub = Hub()
        assert hub.is_following
        with following(hub) as viewer:
            await is_told(viewer, straight, 1)
            assert hub.is_following
            link.cut()
            await becomes(False, hub)
            link.restore()
            await becomes(True, hub)
            link.cut()
            await becomes(False, hub)
        assert hub.is_following, "nobody watches"

    run_on_new_loop(follow())


@pytest.mark.django_db
def test_readiness_names_it(monkeypatch):
    monkeypatch.setattr("amber.web.health.are_followed", lambda: False)
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["event_streams"] is False
    monkeypatch.undo()
    assert Client().get("/readyz").json()["checks"]["event_streams"] is True


def test_the_control_channel_is_heard_until_its_connection_is_half_open(
    link, straight, monkeypatch
):
    stopped: list[tuple[UUID, StopReason]] = []
    monkeypatch.setattr(running_turns, "stop", lambda *said: stopped.append(said))

    async def hear() -> None:
        async with amber_redis.async_blocking_client().pubsub() as pubsub:
            listening = asyncio.create_task(turns._listen(pubsub))
            await asyncio.sleep(1)  # some silences
            assert not listening.done()
            while not stopped:
                straight.publish(control_channel(), str(TURN))
                await asyncio.sleep(0.05)
            link.freeze()
            await listening

    with pytest.raises(redis.TimeoutError):
        run_on_new_loop(hear())
    assert stopped[0] == (TURN, StopReason.CANCELLED)


def test_events_that_redis_refuses_are_told_of(straight):
    """As a Redis does that takes no writes; here because something else lies there."""
    straight.set(KEY, "no stream", ex=60)
    fenced: list[bool] = []
    feed: Any = SimpleNamespace(
        key=KEY,
        expires_at=0.0,
        on_fenced=lambda: fenced.append(True),
        change=lambda _: None,
        write_note=None,
    )

    async def publish() -> None:
        publisher = Publisher()
        publisher.send(feed, "text.delta", 1, b"{}")
        await publisher.wait_until_flushed()

    with capture_logs() as logs:
        run_on_new_loop(publish())
    assert [(each["event"], each["reason"]) for each in logs] == [
        ("events_dropped", "ResponseError")
    ]
    assert not fenced
