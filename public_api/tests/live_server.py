"""The web process's own handler behind a real server on 127.0.0.1, for real clients."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import openai
import uvicorn
from openai import OpenAI

from amber.lib import redis as amber_redis
from amber.processes import wait_until
from amber.web.single_thread_handler import SingleThreadHandler
from chats.tests.runs import WAIT_SECONDS
from public_api.tests.openai_forms import CheckedTransport, Said, faults_of, keep

STOP_SECONDS = 10


@contextmanager
def live_server() -> Iterator[str]:
    """Its address, without a slash at the end."""
    listener = socket.create_server(("127.0.0.1", 0))
    handler = SingleThreadHandler()
    config = uvicorn.Config(
        handler, lifespan="off", log_config=None, timeout_graceful_shutdown=STOP_SECONDS
    )
    server = uvicorn.Server(config)

    async def serve() -> None:
        await server.serve(sockets=[listener])
        handler._threads.shutdown()
        await amber_redis.close_async_clients()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        until(lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


def until(check: Callable[[], object]) -> None:
    assert wait_until(lambda: bool(check()), timeout_seconds=WAIT_SECONDS), "waited in vain"


@contextmanager
def sdk(address: str, key: str) -> Iterator[OpenAI]:
    """OpenAI's own client; it asks once, so that an error is the first one. Whatever it is told must
    have OpenAI's form: the client itself is lenient."""
    heard: list[Said] = []
    transport = CheckedTransport(heard.append)
    with openai.DefaultHttpxClient(trust_env=False, transport=transport) as http:
        yield OpenAI(api_key=key, base_url=f"{address}/v1", max_retries=0, http_client=http)
    for said in heard:
        keep(said)
    faults = [fault for said in heard for fault in faults_of(said)]
    assert not faults, "\n".join(faults)
