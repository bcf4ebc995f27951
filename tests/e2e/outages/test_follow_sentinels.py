"""The primary of Redis dies: the sentinels choose another one, and all of Amber goes there by itself."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from amber.lib.rates import Rate, take
from tests.e2e.conftest import leaves_no_trace
from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import Platform, started_platform
from tests.e2e.kit.sentinels import Sentinels, watched
from tests.e2e.kit.transcripts import check_stored
from tests.fakes.answers import answer_text
from tests.fixtures.provider import RunningProvider

pytestmark = pytest.mark.e2e

TOKENS = 250
SLOW = f"Tell me. [[fake tokens={TOKENS} itl=40]]"
"""10 seconds of text."""


@pytest.fixture(scope="module")
def sentinels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sentinels]:
    with watched(tmp_path_factory.mktemp("sentinels")) as servers:
        yield servers


@pytest.fixture(scope="module")
def platform(fake_provider: RunningProvider, sentinels: Sentinels) -> Iterator[Platform]:
    with started_platform(fake_provider.base_url, REDIS_URL=sentinels.url) as made:
        yield made


def test_every_kind_of_connection_finds_the_new_primary(
    sentinels: Sentinels, settings: Any
) -> None:
    settings.REDIS_URL = sentinels.url
    lost = asyncio.run(_survive(sentinels))
    amber_redis.client().close()
    sentinels.come_back(lost)


async def _survive(sentinels: Sentinels) -> int:
    """Use each of them, lose the primary and a sentinel, and use each again; the port that is lost."""
    async with amber_redis.async_blocking_client().pubsub() as heard:
        await heard.subscribe("news")
        await _use_all(heard)
        assert amber_redis.client().client_info()["db"] == 2
        with sentinels.without_first_sentinel():
            lost = await asyncio.to_thread(sentinels.kill_primary)
            await _until_used(heard)
    await amber_redis.close_async_clients()
    return lost


async def _until_used(heard: PubSub) -> None:
    """A connection that was lost is an error of its caller, once."""
    for _ in range(10):
        try:
            await _use_all(heard)
        except RedisError:
            await asyncio.sleep(0.1)
        else:
            return
    await _use_all(heard)


async def _use_all(heard: PubSub) -> None:
    amber_redis.client().set("amber:a", 1)
    cache.set("b", 2)
    assert cache.get("b") == 2
    take(Rate("test", 1_000, 60), "me")
    together = [(b"SET", b"amber:c", b"3"), (b"GET", b"amber:c")]
    assert await amber_redis.call_together(together) == [b"OK", b"3"]
    await amber_redis.async_client().publish("news", "4")
    said: Any = None
    while said is None or said["type"] != "message":
        said = await heard.get_message(timeout=4)
        assert said is not None
    assert said["data"] == b"4"


def test_answers_go_on_through_two_failovers(platform: Platform, sentinels: Sentinels) -> None:
    """A turn that runs meanwhile ends whole, its viewer sees all of it, workers take the next one, and
    none has ended."""
    eve: Client = platform.new_person("eve", "Remote")
    pids = [member.pid for member in platform.members]
    with leaves_no_trace(platform):
        for _ in range(2):
            asked = eve.ask(SLOW)
            viewer = eve.watch(asked).wait_for_text(100)
            lost = sentinels.kill_primary()
            [answer] = check_stored(eve, asked, viewer.to_the_end())
            assert answer["content"] == answer_text(TOKENS)
            later = eve.ask("And now? [[fake tokens=5]]")
            check_stored(eve, later, eve.watch(later).to_the_end())
            sentinels.come_back(lost)
    assert [member.pid for member in platform.members if member.is_alive] == pids
