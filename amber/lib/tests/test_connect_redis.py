"""Redis clients per process and per loop, against the tests' real server."""

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import redis as redis_py

from amber.lib import redis


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    redis.client().connection_pool.disconnect()
    redis._clients.clear()


def test_a_key_names_installation_kind_and_organization() -> None:
    organization_id = UUID(int=1)
    assert (
        redis.key("turn", organization_id, "t", 7) == f"amber:turn:{organization_id}:t:7".encode()
    )
    assert redis.key("control", None) == b"amber:control:-"


def test_parts_of_a_key_cannot_run_into_each_other() -> None:
    assert redis.key("a", "b:c", "d") != redis.key("a", "b", "c:d")
    assert redis.key("a", "b", "健\n*") == b"amber:a:b:%E5%81%A5%0A%2A"


def test_threads_share_a_client_and_it_works() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(redis.client()))
    thread.start()
    thread.join()
    assert found == [redis.client()]
    assert redis.client().ping()


def test_a_forked_child_has_its_own_client() -> None:
    redis.client().ping()
    name = redis.key("test", None, "fork")
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if redis.client().incr(name) == 1 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert redis.client().getdel(name) == b"1"


def test_an_async_blocking_read_outlasts_the_short_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redis, "SHORT_TIMEOUT_SECONDS", 0.1)

    async def read() -> None:
        name = redis.key("test", None, "empty")
        assert await redis.async_blocking_client().blpop([name], timeout=0.5) is None
        with pytest.raises(redis_py.TimeoutError):
            await redis.async_client().blpop([name], timeout=0.5)
        await redis.close_async_clients()

    asyncio.run(read())


def test_coroutines_of_a_loop_share_a_client_and_loops_do_not() -> None:
    async def clients() -> list[object]:
        found: list[object] = [redis.async_client(), redis.async_client()]
        assert await redis.async_client().ping()
        await redis.close_async_clients()
        return found

    first, second = asyncio.run(clients()), asyncio.run(clients())
    assert first[0] is first[1]
    assert first[0] is not second[0]


def test_a_connection_that_died_while_idle_is_replaced(settings: Any) -> None:
    client = redis.client()
    client.client_setname("idle")
    with redis_py.Redis.from_url(settings.REDIS_URL) as other:
        (idle,) = [each for each in other.client_list() if each["name"] == "idle"]
        other.client_kill_filter(_id=idle["id"])
    assert client.ping()


def test_an_absent_server_is_an_error_of_the_caller(settings: object) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # type: ignore[attr-defined]
    with pytest.raises(redis_py.ConnectionError):
        redis.client().ping()


def test_callers_wait_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis, "MAX_CONNECTIONS", 1)
    client = redis.client()
    held = client.connection_pool.get_connection()
    done = threading.Event()

    def ping() -> None:
        client.ping()
        done.set()

    thread = threading.Thread(target=ping)
    thread.start()
    assert not done.wait(0.1)
    client.connection_pool.release(held)
    assert done.wait(5)
    thread.join()
