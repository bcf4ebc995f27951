"""A real standby answers what bears a stale answer; who wrote sees what they wrote, and a lag has its limit."""

import contextlib
from collections.abc import Iterator, Mapping

import pytest

from tests.e2e.conftest import leaves_no_trace
from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import Platform, pooled_platform
from tests.e2e.kit.standby import Standby, replicating
from tests.e2e.kit.transcripts import check_stored
from tests.fixtures.provider import RunningProvider

pytestmark = pytest.mark.e2e

LAG_SECONDS = 30
"""Long enough to look at a paused standby on a busy machine, short enough to wait for."""


@pytest.fixture(scope="module")
def standbys() -> list[Standby]:
    return []


@pytest.fixture(scope="module")
def running(fake_provider: RunningProvider, standbys: list[Standby]) -> Iterator[Platform]:
    @contextlib.contextmanager
    def replicated(database_url: str) -> Iterator[Mapping[str, str]]:
        with replicating(database_url) as standby:
            standbys.append(standby)
            yield {
                "DATABASE_REPLICA_URL": standby.url,
                "AMBER_REPLICA_LAG_SECONDS": str(LAG_SECONDS),
            }

    with pooled_platform(fake_provider.base_url, replicated) as made:
        yield made


@pytest.fixture
def platform(running: Platform) -> Iterator[Platform]:
    with leaves_no_trace(running):
        yield running


@pytest.fixture(scope="module")
def standby(running: Platform, standbys: list[Standby]) -> Standby:
    return standbys[0]


def names(who: Client) -> set[str]:
    return {chat["name"] for chat in who.get("chats/?owner=api").body["results"]}


def forget_writes(platform: Platform) -> None:
    """As if all had written long ago."""
    with platform.redis as client:
        for key in client.keys("amber:written:*"):
            client.delete(key)


def test_who_wrote_sees_it_and_others_read_the_replica(
    platform: Platform, standby: Standby
) -> None:
    """Two keys of one person are one person; another person's rows stay out of sight there, too."""
    ann, rob = (platform.new_person(name, f"{name}'s") for name in ("ann", "rob"))
    rob.post("chats/", {"name": "Rob's"})
    ann.post("chats/", {"name": "First"})
    wait_until_read(platform, ann, standby)
    standby.pause()
    try:
        ann.post("chats/", {"name": "Second"})
        assert names(ann) == {"First", "Second"}
        forget_writes(platform)
        assert names(ann) == {"First"}, "answered by the standby, within the wall"
        assert names(rob) == {"Rob's"}
        for path in ("usage/?group_by=model", "usage/export/", "chats/search/?q=first"):
            assert ann.get(path).status == 200, path
    finally:
        standby.resume()


def test_what_a_worker_wrote_for_somebody_is_seen_at_once(
    platform: Platform, standby: Standby
) -> None:
    eve = platform.new_person("eve", "eve's")
    asked = eve.ask("Tell me. [[fake tokens=100 itl=100]]")
    viewer = eve.watch(asked).wait_for_text(1)
    wait_until_read(platform, eve, standby)
    standby.pause()
    try:
        [chat] = eve.get("chats/?owner=api").body["results"]
        assert chat["live_turn_id"] == asked.turn_id
        check_stored(eve, asked, viewer.to_the_end())
        [chat] = eve.get("chats/?owner=api").body["results"]
        assert chat["live_turn_id"] is None
    finally:
        standby.resume()


def test_a_replica_that_lags_is_left_and_taken_again(platform: Platform, standby: Standby) -> None:
    kim = platform.new_person("kim", "kim's")
    kim.post("chats/", {"name": "Old"})
    wait_until_read(platform, kim, standby)
    standby.pause()
    try:
        kim.post("chats/", {"name": "New"})
        forget_writes(platform)
        assert names(kim) == {"Old"}
        platform.wait_for(lambda: "New" in names(kim), "the primary's answer", 3 * LAG_SECONDS)
    finally:
        standby.resume()
    wait_until_read(platform, kim, standby)


def test_a_replica_that_is_gone_harms_nobody(platform: Platform, standby: Standby) -> None:
    joe = platform.new_person("joe", "joe's")
    joe.post("chats/", {"name": "Only"})
    wait_until_read(platform, joe, standby)
    standby.stop()
    try:
        assert [names(joe) for _ in range(3)] == [{"Only"}] * 3
    finally:
        standby.start()
    wait_until_read(platform, joe, standby)


def wait_until_read(platform: Platform, who: Client, standby: Standby) -> None:
    """Until the standby answers this person, and all that was written is there.

    The place where the next record goes, since the tests' Postgres writes commits out a little later. A
    standby that is only asked how far it is, and found behind, answers nobody yet.
    """
    [(position,)] = platform.query("SELECT pg_current_wal_insert_lsn()::text")
    replayed = f"SELECT pg_last_wal_replay_lsn() >= '{position}'"
    platform.wait_for(lambda: standby.ask(replayed), "replay")
    last = (
        "SELECT coalesce(max(extract(epoch FROM query_start)), 0)::float FROM pg_stat_activity"
        " WHERE usename = 'amber_app' AND query NOT LIKE '%pg_last_wal_replay_lsn%'"
    )

    def last_asked() -> float:
        return float(str(standby.ask(last)))

    def is_read() -> bool:
        forget_writes(platform)
        before = last_asked()
        names(who)
        return last_asked() > before

    platform.wait_for(is_read, "reads of the standby")
