"""The network between Amber and its servers breaks: it must be whole again soon after the network is.

How soon is no function of how long it was away. Nothing here asserts speed: the limits lie far from
what is usual, and far from what the backoff of the libraries would make of such an outage.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.client import Client
from tests.e2e.platform import Platform, started_platform
from tests.fixtures_provider import RunningProvider

pytestmark = pytest.mark.e2e

OUTAGE_SECONDS = 18.0
"""A pause that doubles from 1 s on would end 10 to 17 s after an outage of this length."""
RECOVERY_SECONDS = 7.0


@pytest.fixture(scope="module")
def running(fake_provider: RunningProvider) -> Iterator[Platform]:
    with started_platform(
        fake_provider.base_url, has_links=True, AMBER_SWEEP_SECONDS="1"
    ) as platform:
        yield platform


@pytest.fixture
def platform(running: Platform) -> Platform:
    running.wait_until_ready()
    return running


@pytest.fixture(scope="module")
def eve(running: Platform) -> Client:
    return running.new_person("eve", "Remote")


def seconds_until(check, limit_seconds: float = 120.0) -> float:
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < limit_seconds, "it never happened"
        time.sleep(0.05)
    return time.monotonic() - began


def beats_since(platform: Platform, role: str, moment) -> bool:
    sql = "SELECT 1 FROM chats_workerheartbeat WHERE queue = %s AND beat_at > %s"
    return bool(platform.query(sql, role, moment))


def test_everything_is_back_soon_after_a_long_outage_of_postgres(platform, eve):
    chat_id = eve.new_chat()
    with ThreadPoolExecutor(8) as callers:  # so that pools have several connections to lose
        list(callers.map(lambda _: eve.get("assistants/"), range(40)))
    platform.postgres_link.cut()
    ends_at = time.monotonic() + OUTAGE_SECONDS
    while time.monotonic() < ends_at:
        assert eve.get("assistants/", is_checked=False).status == 503
    platform.postgres_link.restore()
    [(mended_at,)] = platform.query("SELECT statement_timestamp()")
    back = {"web": seconds_until(lambda: eve.get("assistants/", is_checked=False).status == 200)}
    for role in ("chat", "ingest"):
        back[role] = seconds_until(lambda role=role: beats_since(platform, role, mended_at))
    print(back)
    assert sum(back.values()) < RECOVERY_SECONDS, back
    asked = eve.ask("Hello [[fake tokens=3]]", chat_id=chat_id)
    assert eve.ended(asked.turn_id)["status"] == "completed"
