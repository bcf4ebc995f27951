"""Send a turn's answer in another protocol's form: whole, or frame by frame.

    DeferredResponse(partial(whole_answer, turn, tell, is_kept=…))
    DeferredResponse(partial(streamed_answer, turn, tell, is_kept=…))

Nothing is sent before there is something to say, so that a turn that fails at once is answered with
the status of its error; one that is silent for longer than a heartbeat begins its stream. From then
on an error is a frame of the stream, and every stream ends with [DONE].
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Final, TypeVar

from django.db import InterfaceError, OperationalError
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from redis.exceptions import RedisError

from accounts.principal import Principal
from accounts.tenancy.access import get_visible
from accounts.tenancy.idempotency import Replay
from amber.lib.errors import AmberError, Missing
from amber.lib.json_text import numbers
from amber.lib.rest.api import as_amber_error
from chats.models import Turn
from chats.streaming.stream_view import HEARTBEAT, stream_response
from chats.streaming.turn_follower import follow_turn
from engine.events import Event, Transcript, TurnCompleted, apply_event
from public_api.openai.errors import error_frame
from public_api.openai.growing_answer import Row, TakenBackError

DONE: Final = b"data: [DONE]\n\n"
CHAT_HEADER: Final = "X-Amber-Chat-Id"
NO_HEADERS: Final[Mapping[str, str]] = {}

Json = dict[str, Any]
TellWhole = Callable[[list[Row], TurnCompleted], Json]
AnswerT = TypeVar("AnswerT", bound=HttpResponseBase)
TellEvent = Callable[[Event], Iterator[Json]]


def turn_of(done: Turn | Replay, caller: Principal) -> Turn:
    """Return the turn that was started now, or by the first request with the same Idempotency-Key.

    One query for the latter. Raises Missing, also when what it said was erased meanwhile.
    """
    if isinstance(done, Turn):
        return done
    turn = get_visible(Turn, caller, done.answer["id"])
    if not turn.is_live and turn.chat_id is None and turn.output is None:
        raise Missing("The answer to this request is no longer stored.")
    return turn


async def whole_answer(
    turn: Turn, tell: TellWhole, *, is_kept: bool, headers: Mapping[str, str] = NO_HEADERS
) -> HttpResponse:
    """Return the whole answer. Raises AmberError unless the turn completes: no part is sent."""
    seen = Transcript()
    async with aclosing(follow_turn(turn, is_kept=is_kept)) as events:
        async for event in events:
            if event is not None:
                apply_event(seen, event)
            if isinstance(event, TurnCompleted):
                body = tell(list(seen.messages), event)
    answer = HttpResponse(numbers.write(body), content_type="application/json", headers=headers)
    return _name_chat(answer, turn)


async def streamed_answer(
    turn: Turn, tell: TellEvent, *, is_kept: bool, headers: Mapping[str, str] = NO_HEADERS
) -> StreamingHttpResponse:
    """Return the stream once it has a first frame. Raises AmberError for a turn that fails
    before."""
    frames = _frames(turn, tell, is_kept=is_kept)
    first = await anext(frames)
    answer = stream_response(_to_the_end(first, frames))
    for name, value in headers.items():
        answer[name] = value
    return _name_chat(answer, turn)


async def _frames(turn: Turn, tell: TellEvent, *, is_kept: bool) -> AsyncGenerator[bytes, None]:
    """Yield the frames. Raises AmberError, TakenBackError."""
    async with aclosing(follow_turn(turn, is_kept=is_kept)) as events:
        async for event in events:
            if event is None:
                yield HEARTBEAT
                continue
            if told := b"".join(_frame(part) for part in tell(event)):
                yield told


async def _to_the_end(
    first: bytes, frames: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yield all frames. An error is one of them, and never the silent end of the stream."""
    try:
        async with aclosing(frames):
            yield first
            async for frame in frames:
                yield frame
    except TakenBackError:
        said = "A worker was lost, and its part of the answer could not be repeated."
        yield error_frame(AmberError(said, code="worker_lost"))
    except (AmberError, OperationalError, InterfaceError, RedisError) as error:
        yield error_frame(as_amber_error(error))
    yield DONE


def _frame(part: Json) -> bytes:
    return b"data: %s\n\n" % numbers.write(part)


def _name_chat(answer: AnswerT, turn: Turn) -> AnswerT:
    """Name the chat, for the client's next question."""
    if turn.chat_id is not None:
        answer[CHAT_HEADER] = str(turn.chat_id)
    return answer
