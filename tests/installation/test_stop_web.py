"""A web process that stops: not ready first, connections closed after their answer, streams sent elsewhere."""

import asyncio
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from amber.lib.rest import drain as drain_module
from amber.lib.rest import stopping
from amber.lib.rest.drain import Drain
from amber.up import commands
from amber.web import health

HTTP = {"type": "http", "path": "/"}


@pytest.fixture
def drain(monkeypatch: pytest.MonkeyPatch) -> Iterator[Drain]:
    fresh = Drain()
    for module in (drain_module, stopping, health):
        monkeypatch.setattr(module, "drain", fresh)
    yield fresh


async def plain(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
    await send({"type": "http.response.body", "body": b""})


async def headers_of(application: Any) -> list[tuple[bytes, bytes]]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await application(HTTP, None, send)
    headers: list[tuple[bytes, bytes]] = sent[0]["headers"]
    return headers


def test_a_draining_process_is_not_ready_but_alive(drain):
    assert Client().get("/readyz?of=process").json()["checks"] == {"accepting": True}
    drain.begin()
    answer = Client().get("/readyz?of=process")
    assert (answer.status_code, answer.json()["checks"]) == (503, {"accepting": False})
    assert Client().get("/healthz").status_code == 200


@pytest.mark.django_db
def test_readiness_as_a_whole_says_so_too(drain):
    drain.begin()
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["accepting"]) == (503, False)


def test_answers_close_their_connection_while_the_process_drains(drain):
    application = stopping.drain_on_stop(plain)
    assert asyncio.run(headers_of(application)) == [(b"a", b"b")]
    drain.begin()
    assert asyncio.run(headers_of(application)) == [(b"a", b"b"), (b"connection", b"close")]


@pytest.mark.parametrize(
    ("signals", "drain_seconds", "order"),
    [
        ([signal.SIGTERM], 0.05, ["drain", "stop", "close"]),
        ([signal.SIGTERM], 0, ["stop", "close"]),
        ([signal.SIGTERM, signal.SIGTERM], 600, ["drain", "stop", "close"]),
        ([signal.SIGINT], 600, ["stop", "close"]),
    ],
)
def test_stops_in_order_and_at_once_when_asked_again(
    drain, settings, monkeypatch, signals, drain_seconds, order
):
    """`drain` is told of if it lasted; the server's own handler is what `stop` calls."""
    settings.AMBER_DRAIN_SECONDS = drain_seconds
    monkeypatch.setattr(stopping, "CLOSED_SECONDS", 0)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    told: list[str] = []

    async def live() -> None:
        closed = asyncio.Event()
        drain.on_closing(lambda: told.append("close"))
        drain.on_closing(closed.set)
        messages: asyncio.Queue[Any] = asyncio.Queue()
        messages.put_nowait({"type": "lifespan.startup"})
        said: asyncio.Queue[Any] = asyncio.Queue()
        application: Any = stopping.drain_on_stop(plain)
        for number in signals:
            signal.signal(number, lambda *_: told.append("stop"))
        running: asyncio.Task[None] = asyncio.create_task(
            application({"type": "lifespan"}, messages.get, said.put)
        )
        assert (await said.get())["type"] == "lifespan.startup.complete"
        for number in signals:
            signal.raise_signal(number)
            await asyncio.sleep(0.01)
            if drain.is_draining and not told:
                told.append("drain")
        await asyncio.wait_for(closed.wait(), 20)
        messages.put_nowait({"type": "lifespan.shutdown"})
        await running

    try:
        asyncio.run(live())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert told == order
    assert drain.is_closing


def test_the_server_waits_as_long_as_workers_do_for_what_cannot_be_resumed():
    web = commands({"AMBER_SHUTDOWN_GRACE_SECONDS": "2.5"})["web"]
    assert web[web.index("--timeout-graceful-shutdown") + 1] == "3"
