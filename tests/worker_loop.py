"""Closes what the worker's loop of the tests' process holds open; a pytest plugin."""

import asyncio
from collections.abc import Iterator

import pytest

from amber.lib import redis
from amber.lib.workers.thread_bridge import worker_loop
from engine.provider import client


@pytest.fixture(autouse=True, scope="session")
def no_connection_left_open() -> Iterator[None]:
    """The loop lives as long as the process, and would leave its connections to the interpreter's end."""
    yield
    for closing in (redis.close_async_clients(), client.close_clients()):
        asyncio.run_coroutine_threadsafe(closing, worker_loop()).result(10)
