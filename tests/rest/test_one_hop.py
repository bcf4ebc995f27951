"""What becomes of an answer whose client goes while the view is still at work."""

import asyncio
import threading
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from django.http import FileResponse, HttpRequest, HttpResponse
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
