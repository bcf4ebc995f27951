"""Send a response: whole, event by event, or in its current state.

    DeferredResponse(partial(streamed_response, turn, form, is_kept=…))
    DeferredResponse(partial(settled_response, turn))

As with chat completions (`public_api.openai.answering`) nothing is sent before there is something
to say, unless the client asked for the background: then it learns the id first. A turn that fails
later is an event, and so is whatever breaks the stream off; then comes [DONE].
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import Final

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpResponse, StreamingHttpResponse
from redis.exceptions import RedisError

from amber.lib.database.connections import make_async
from amber.lib.errors import AmberError, Conflict, Missing
from amber.lib.json_text import numbers
from amber.lib.rest.api import as_amber_error
from chats.context.call_options import CallOptions
from chats.messages.turn_messages import shown_entries_of_turn
from chats.models import Turn
from chats.streaming.stream_view import HEARTBEAT, stream_response
from chats.streaming.turn_follower import follow_turn
from engine.events import TurnCompleted, TurnStatus
from public_api.openai.answering import DONE
from public_api.openai.errors import error_object
from public_api.openai.growing_answer import Row, TakenBackError, citations, show_answer
from public_api.responses.body import (
    Json,
    ResponseFormat,
    State,
    completed_state,
    error_of,
    output_items,
    response,
)
from public_api.responses.events import ResponseEvents, after
from public_api.responses.names import RequestEcho

SETTLE_SECONDS: Final = 10.0
"""How long to wait for the end of a cancelled response; its worker hears of it within a second."""

_STATUS: Final = {
    TurnStatus.QUEUED: "queued",
    TurnStatus.RUNNING: "in_progress",
    TurnStatus.WAITING: "in_progress",
    TurnStatus.CANCELLED: "cancelled",
}
"""States by the turn's status; any other has failed. `completed` depends on the finish reason:
`completed_state`."""


def form_of(turn: Turn) -> ResponseFormat:
    """Return the response's form. Raises Missing if it is no response, or is no longer stored."""
    asked = RequestEcho.of(turn)
    if asked is None:
        raise Missing("This response does not exist, or you have no access to it.")
    options = CallOptions.read(turn.options)
    created = int(turn.created_at.timestamp())
    return ResponseFormat(turn.pk.hex, created, asked, options, settings.AMBER_PUBLIC_URL)


def response_of(turn: Turn) -> Json:
    """Return the response as it is stored now. Five queries at most. Raises Missing."""
    form, state = form_of(turn), state_of(turn)
    messages = shown_entries_of_turn(turn)
    step = turn.step + 1
    texts = {step: turn.partial_text} if turn.partial_text else {}
    thoughts = {step: turn.partial_reasoning} if turn.partial_reasoning else {}
    answer = show_answer(messages, texts, thoughts, client_tools=form.client_tools)
    return response(form, state, output_items(form, answer, citations(messages), state))


def state_of(turn: Turn) -> State:
    ended = int(turn.ended_at.timestamp()) if turn.ended_at else None
    if turn.status == TurnStatus.COMPLETED:
        return completed_state(turn.finish_reason, turn.usage, ended or 0)
    error = turn.error and error_of(turn.error["code"], turn.error["message"])
    return State(
        _STATUS.get(TurnStatus(turn.status), "failed"), turn.usage or None, "", error, ended
    )


def whole_response(form: ResponseFormat, messages: Sequence[Row], end: TurnCompleted) -> Json:
    """Return the response once its turn has ended."""
    state = completed_state(end.finish_reason, end.usage, int(time.time()))
    answer = show_answer(messages, client_tools=form.client_tools)
    return response(form, state, output_items(form, answer, citations(messages), state))


async def settled_response(turn: Turn) -> HttpResponse:
    """Return it once it has ended, or as it is after SETTLE_SECONDS. Raises Missing."""
    with suppress(TimeoutError, AmberError):  # however it ends, its row says so
        async with asyncio.timeout(SETTLE_SECONDS):
            async with aclosing(follow_turn(turn, is_kept=True)) as events:
                async for _ in events:
                    pass
    return HttpResponse(numbers.write(await _read(turn)), content_type="application/json")


async def streamed_response(
    turn: Turn, form: ResponseFormat, *, number: int = -1, is_kept: bool
) -> StreamingHttpResponse:
    """Stream the events after that number. Raises AmberError for a turn that fails before any."""
    frames = _frames(turn, form, number, is_kept=is_kept)
    first = await anext(frames)
    return stream_response(_to_the_end(first, frames))


async def _frames(
    turn: Turn, form: ResponseFormat, number: int, *, is_kept: bool
) -> AsyncGenerator[bytes, None]:
    """Yield the frames. Raises AmberError before the first one only."""
    telling = ResponseEvents(form, time.time)
    has_begun = form.asked.is_background or number >= 0
    if has_begun:
        # A client that returns has these: something must be sent at once all the same.
        yield _bytes(telling.begin(), number) or HEARTBEAT
    try:
        async with aclosing(follow_turn(turn, is_kept=is_kept)) as events:
            async for event in events:
                told = HEARTBEAT if event is None else _bytes(telling.take(event), number)
                if told:
                    has_begun = True
                    yield told
    except TakenBackError:
        said = "A worker was lost, and its part of the answer could not be repeated."
        yield _broken_off(telling, AmberError(said, code="worker_lost"))
    except (AmberError, OperationalError, InterfaceError, RedisError) as error:
        if not has_begun:
            raise
        yield _end_stream(telling, error, number)


async def _to_the_end(
    first: bytes, frames: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    async with aclosing(frames):
        yield first
        async for frame in frames:
            yield frame
    yield DONE


def _end_stream(telling: ResponseEvents, error: Exception, number: int) -> bytes:
    """Return the turn's end if the error is its end (it names the turn); else only the stream's."""
    if not isinstance(error, AmberError) or error.turn_id is None or error.code == "unavailable":
        return _broken_off(telling, as_amber_error(error))
    if isinstance(error, Conflict):
        return _bytes(telling.cancel(), number)
    return _bytes(telling.fail(error.code, error.message), number)


def _broken_off(telling: ResponseEvents, error: AmberError) -> bytes:
    return _bytes(telling.break_off(error_object(error)), -1)


def _bytes(events: Iterable[Json], number: int) -> bytes:
    rest = (after(number, event) for event in events)
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), numbers.write(event))
        for event in rest
        if event is not None
    )


@make_async
def _read(turn: Turn) -> Json:
    """Read the turn anew. Raises Missing."""
    try:
        return response_of(Turn.objects.get(pk=turn.pk))
    except Turn.DoesNotExist:
        raise Missing from None
