"""Test how a request is handled: in which threads, and what becomes of an answer whose client goes."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from io import BytesIO
from typing import Any

import pytest
from django.core.signals import request_finished
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from amber.lib.rest.async_response import DeferredResponse
from amber.web.single_thread_handler import PIECE_BYTES, SingleThreadHandler

WAIT_SECONDS = 10


class Handler(SingleThreadHandler):
    """Its views answer once they may."""

    def __init__(self, answer: Callable[[], HttpResponseBase]) -> None:
        super().__init__()
        self.answer = answer
        self.works, self.may_answer = threading.Event(), threading.Event()

    def _respond(self, request: HttpRequest) -> HttpResponseBase:
        self.works.set()
        assert self.may_answer.wait(WAIT_SECONDS)
        return self.answer()


SCOPE: dict[str, Any] = {
    "type": "http",
    "method": "GET",
    "path": "/",
    "query_string": b"",
    "headers": [],
}


async def exchange(
    handler: Handler, *, leaves: asyncio.Event | None = None
) -> list[dict[str, Any]]:
    """Return what the handler sends to a client, who leaves when it is told to."""
    sent: list[dict[str, Any]] = []
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in asked:
            return message
        await (leaves or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await handler(SCOPE, receive, send)
    return sent


@pytest.fixture
def finished_in() -> Iterator[list[threading.Thread]]:
    """In which threads requests have ended."""
    threads: list[threading.Thread] = []

    def note(**_: Any) -> None:
        threads.append(threading.current_thread())

    request_finished.connect(note)
    yield threads
    request_finished.disconnect(note)


def test_a_stream_is_sent_whole_and_ends_on_the_event_loop(finished_in):
    async def parts() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    handler = Handler(lambda: StreamingHttpResponse(parts()))
    handler.may_answer.set()
    sent = asyncio.run(exchange(handler))
    assert sent[0]["status"] == 200
    assert b"".join(message["body"] for message in sent[1:] if "body" in message) == b"ab"
    assert finished_in == [threading.current_thread()]


def test_a_stream_is_closed_when_its_client_goes(finished_in):
    closed: list[str] = []

    async def ask_and_go() -> None:
        leaves = asyncio.Event()

        async def parts() -> AsyncIterator[bytes]:
            try:
                yield b"a"
                leaves.set()
                await asyncio.sleep(WAIT_SECONDS)
            finally:
                closed.append("by then")

        handler = Handler(lambda: StreamingHttpResponse(parts()))
        handler.may_answer.set()
        await exchange(handler, leaves=leaves)

    asyncio.run(ask_and_go())
    assert closed == ["by then"]
    assert finished_in == [threading.current_thread()]


def test_a_request_ends_whose_client_goes_before_there_is_an_answer(finished_in):
    async def ask_and_go() -> list[dict[str, Any]]:
        leaves = asyncio.Event()
        handler = Handler(HttpResponse)
        asked = asyncio.create_task(exchange(handler, leaves=leaves))
        assert await asyncio.to_thread(handler.works.wait, WAIT_SECONDS)
        leaves.set()
        await asyncio.sleep(0)
        handler.may_answer.set()
        return await asked

    assert asyncio.run(ask_and_go()) == []
    assert finished_in == [threading.current_thread()]


async def ask_and_leave(handler: Handler) -> None:
    asked = asyncio.create_task(handler.run_get_response(HttpRequest()))
    assert await asyncio.to_thread(handler.works.wait, WAIT_SECONDS)
    asked.cancel()
    handler.may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await asked


def test_what_a_view_began_for_a_client_that_has_gone_is_cleaned_up():
    told: list[str] = []

    async def make() -> HttpResponseBase:
        told.append("begun")
        try:
            await asyncio.sleep(WAIT_SECONDS)
        finally:
            await asyncio.sleep(0)
            told.append("cleaned up")
        return HttpResponse()

    asyncio.run(ask_and_leave(Handler(lambda: DeferredResponse(make))))
    assert told == ["begun", "cleaned up"]


def test_leaving_before_a_view_has_answered_at_once_harms_nothing():
    asyncio.run(ask_and_leave(Handler(HttpResponse)))


def test_a_view_that_no_thread_had_taken_up_never_runs(settings):
    settings.AMBER_WEB_THREADS = 1
    answered: list[str] = []

    def answer() -> HttpResponse:
        answered.append("once")
        return HttpResponse()

    async def leave_the_queue() -> None:
        handler = Handler(answer)
        first = asyncio.create_task(handler.run_get_response(HttpRequest()))
        assert await asyncio.to_thread(handler.works.wait, WAIT_SECONDS)
        second = asyncio.create_task(handler.run_get_response(HttpRequest()))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        handler.may_answer.set()
        await first

    asyncio.run(leave_the_queue())
    assert answered == ["once"]


def test_a_file_is_read_a_piece_at_a_time_and_closed():
    file = BytesIO(b"amber" * PIECE_BYTES)

    async def read() -> list[bytes]:
        handler = Handler(lambda: FileResponse(file))
        handler.may_answer.set()
        response: Any = await handler.run_get_response(HttpRequest())
        pieces = [piece async for piece in response]
        response.close()
        return pieces

    pieces = asyncio.run(read())
    assert [len(piece) for piece in pieces] == [PIECE_BYTES] * 5
    assert b"".join(pieces) == b"amber" * PIECE_BYTES
    assert file.closed
