"""Postgres and Redis are away, half-open or refuse writes: all is whole again soon after they are.

How soon is no function of how long it lasted. Nothing here asserts speed: the limits lie far from what
is usual, and far from what the libraries' own pauses would make of such an outage.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.conftest import leaves_no_trace
from tests.e2e.kit.client import Asked, Client, Viewer
from tests.e2e.kit.platform import Platform, linked_platform
from tests.e2e.kit.transcripts import check_stored
from tests.fakes.answers import answer_text
from tests.fixtures.ports import free_port
from tests.fixtures.provider import RunningProvider

pytestmark = pytest.mark.e2e

POSTGRES_AWAY_SECONDS = 18.0
"""psycopg's pause, doubled from 1 s on, would end 10 to 17 s after an outage of this length."""
REDIS_AWAY_SECONDS = 22.0
"""Celery's pause, 2 s longer each time, would end 8 s after it."""
RECOVERY_SECONDS = 6.0
HALF_OPEN_SECONDS = 20.0
"""kombu by itself would take 26 s or more to notice, the others for ever."""
REFUSAL_SECONDS = 6.0

TOKENS = 300
SLOW = f"Tell me. [[fake tokens={TOKENS} itl=40]]"
"""12 seconds of text."""


@pytest.fixture(scope="module")
def running(fake_provider: RunningProvider) -> Iterator[Platform]:
    """Keepers look after their worker each second, so that this adds little to what is measured."""
    with linked_platform(fake_provider.base_url, AMBER_SWEEP_SECONDS="1") as platform:
        yield platform


@pytest.fixture
def platform(running: Platform) -> Iterator[Platform]:
    running.restore()
    with leaves_no_trace(running):
        yield running


@pytest.fixture(scope="module")
def eve(running: Platform) -> Client:
    return running.new_person("eve", "Remote")


def wait(platform: Platform, what: str, check: Callable[[], object], seconds: float) -> float:
    """How long it took."""
    began = time.monotonic()
    platform.wait_for(check, what, seconds)
    return time.monotonic() - began


def waiting_in_redis(platform: Platform, kind: str) -> set[str]:
    """The connections that wait there: for queues, for streams, for what is announced."""
    with platform.redis as client:
        found: list[dict[str, Any]] = client.client_list()
    return {c["id"] for c in found if (c["sub"] != "0" if kind == "sub" else c["cmd"] == kind)}


def streams_live(eve: Client) -> None:
    """An answer comes as it is written, by the stream alone, and can be cancelled."""
    asked = eve.ask(SLOW)
    viewer = eve.watch(asked).wait_for_text(200)
    assert "turn.snapshot" not in viewer.names, viewer.names
    assert eve.post(f"turns/{asked.turn_id}/cancel/").status == 200
    assert eve.ended(asked.turn_id)["status"] == "cancelled"
    viewer.to_the_end()


def is_whole(eve: Client, asked: Asked, viewer: Viewer) -> None:
    [answer] = check_stored(eve, asked, viewer.to_the_end())
    assert answer["content"] == answer_text(TOKENS)


def test_all_is_back_soon_after_a_long_outage_of_postgres(running, eve):
    """Requests that had to wait for too long are 503, and logged with their trace."""
    platform = running
    with ThreadPoolExecutor(8) as callers:  # so that the pool has several connections to lose
        list(callers.map(lambda _: eve.get("assistants/"), range(40)))
    platform.postgres_link.cut()
    ends_at = time.monotonic() + POSTGRES_AWAY_SECONDS
    with ThreadPoolExecutor(1) as caller:
        asking = caller.submit(lambda: eve.get("assistants/", is_checked=False).status)
        time.sleep(ends_at - time.monotonic())
        platform.postgres_link.restore()
        assert asking.result() == 503
    [(since,)] = platform.query("SELECT statement_timestamp()")
    sql = "SELECT 1 FROM chats_workerheartbeat WHERE queue = %s AND beat_at > %s"

    def is_back() -> bool:
        beat = all(platform.query(sql, role, since) for role in ("chat", "ingest"))
        return beat and eve.get("assistants/", is_checked=False).status == 200

    wait(platform, "recovery", is_back, RECOVERY_SECONDS)
    streams_live(eve)


def test_workers_are_back_soon_after_a_long_outage_of_redis(platform, eve):
    pids = [member.pid for member in platform.members if member.is_alive]
    platform.redis_link.cut()
    time.sleep(REDIS_AWAY_SECONDS)
    assert not waiting_in_redis(platform, "brpop")
    platform.redis_link.restore()
    wait(
        platform,
        "consumers",
        lambda: len(waiting_in_redis(platform, "brpop")) == 2,
        RECOVERY_SECONDS,
    )
    assert pids == [member.pid for member in platform.members if member.is_alive]
    streams_live(eve)


@pytest.mark.parametrize("how", ["without replicas", "as a replica"])
def test_no_worker_ends_while_redis_refuses_writes(platform, eve, how):
    pids = [member.pid for member in platform.members]
    turns = [eve.ask(SLOW) for _ in range(3)]
    viewers = [eve.watch(asked).wait_for_text(20) for asked in turns]
    nobody = free_port()
    with platform.redis as redis:
        if how == "as a replica":
            redis.replicaof("127.0.0.1", nobody)
        else:
            redis.config_set("min-replicas-to-write", 1)
        try:
            late = eve.ask("Hello [[fake tokens=3]]")
            time.sleep(REFUSAL_SECONDS)
        finally:
            redis.replicaof("no", "one")
            redis.config_set("min-replicas-to-write", 0)
    for asked, viewer in zip(turns, viewers, strict=True):
        is_whole(eve, asked, viewer)
    assert eve.ended(late.turn_id)["status"] == "completed"
    streams_live(eve)
    assert [member.pid for member in platform.members if member.is_alive] == pids


def test_half_open_connections_to_redis_are_noticed(platform, eve):
    turns = [eve.ask(SLOW.replace(str(TOKENS), "1000")) for _ in range(2)]
    viewers = [eve.watch(asked).wait_for_text(50) for asked in turns]
    kinds = ("brpop", "xread", "sub")
    before = {kind: waiting_in_redis(platform, kind) for kind in kinds}
    assert [len(before[kind]) for kind in kinds] == [2, 1, 1]
    seen = [len(viewer.events) for viewer in viewers]
    assert platform.redis_link.freeze() >= 4

    def are_new() -> bool:
        new = [waiting_in_redis(platform, kind) - before[kind] for kind in kinds]
        return [len(ids) for ids in new] == [2, 1, 1]

    wait(platform, "new connections", are_new, HALF_OPEN_SECONDS)
    for viewer, count in zip(viewers, seen, strict=True):
        # Not from Postgres, which is asked once the stream is silent.
        viewer.wait_for(lambda v, n=count: v.names[n:][-10:] == ["text.delta"] * 10)
    for asked in turns:
        assert eve.post(f"turns/{asked.turn_id}/cancel/").status == 200
        assert eve.ended(asked.turn_id)["status"] == "cancelled"
    streams_live(eve)
    assert platform.readiness() == 200
