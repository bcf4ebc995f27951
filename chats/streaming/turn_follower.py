"""Follow a turn to its end, for answers in other forms than its events: whole, or as they grow.

    ended = await wait_for_end(turn)
    async for event in follow_turn(turn): ...

Both wait on the event loop: no thread and no database connection is held meanwhile. If the client
disconnects, nobody needs the answer, and the turn is cancelled, unless it is to be kept.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from django.conf import settings
from pydantic import TypeAdapter

from accounts.principal import Principal
from amber.lib.database.connections import make_async
from amber.lib.errors import AmberError, Conflict, Missing, Unavailable
from chats.events.viewers import StreamEvent
from chats.messages.turn_messages import shown_fields_of
from chats.models import Turn
from chats.services import cancel_turn
from chats.streaming.turn_events import turn_events
from engine.events import (
    EVENT_TYPES,
    AnyEvent,
    Event,
    MessageStored,
    TurnCancelled,
    TurnFailed,
    TurnIncomplete,
    TurnSnapshot,
)
from engine.messages import MessageRole

QUEUE_SECONDS = 60
"""How long a turn may wait for a worker, on top of the time it may take."""


_EVENT: Final[TypeAdapter[Event]] = TypeAdapter(AnyEvent)


async def wait_for_end(
    turn: Turn, *, is_kept: bool = False, viewed_by: Principal | None = None
) -> Turn:
    """Wait for the turn's end, and return it as it is stored then.

    Raises what `follow_turn` raises; `is_kept` and `viewed_by` as there.
    """
    async with aclosing(follow_turn(turn, is_kept=is_kept, viewed_by=viewed_by)) as events:
        async for _ in events:
            pass
    return await _load_turn(turn)


async def follow_turn(
    turn: Turn, *, is_kept: bool = False, viewed_by: Principal | None = None
) -> AsyncGenerator[Event | None, None]:
    """Yield the turn's events until it has completed; None where a heartbeat is due.

    `viewed_by` as in `event_stream`; it is needed for a principal with a session. `is_kept`: the
    turn goes on if this generator is closed or cancelled before. If the client brought tools,
    replies have their `provider_fields`: the client must send them back with the results. Raises
    AmberError with the turn's code if it fails or stays incomplete, Conflict if it is cancelled,
    Missing if it is deleted, and Unavailable if no worker ends it within AMBER_TURN_SECONDS and
    QUEUE_SECONDS.
    """
    deadline = asyncio.get_running_loop().time() + settings.AMBER_TURN_SECONDS + QUEUE_SECONDS
    is_over = False
    known = _KnownFields(turn)
    try:
        async with aclosing(turn_events(turn, viewed_by=viewed_by)) as events:
            while not is_over:
                async with asyncio.timeout_at(deadline):
                    told = await anext(events)
                event = None if told is None else _read(told)
                is_over = event is not None and event.is_last
                _raise_end(turn, event)
                if turn.options.get("tools"):
                    await known.add_to(event)
                yield event
    except StopAsyncIteration:
        is_over = True
        # The events of a turn that is not deleted end with a last one, which ends the loop.
        raise Missing from None
    except TimeoutError:
        # Nobody would read the answer: whoever asked is told that there is none.
        is_kept = False
        raise Unavailable("No worker has answered in time.", turn_id=str(turn.pk)) from None
    finally:
        if not is_over and not is_kept:
            await _cancel(turn)


def _read(told: StreamEvent) -> Event | None:
    """Return the event without unknown fields; None for an unknown type: a newer release may send both."""
    if told.name not in EVENT_TYPES:
        return None
    return _EVENT.validate_json(told.data, extra="ignore")


class _KnownFields:
    """Adds the `provider_fields` of a turn's replies to its events, which do not hold them, since
    viewers get the same events.

    One query for each reply, whose rows were stored together.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._by_id: dict[str, Any] = {}
        self._replies: set[str] = set()

    async def add_to(self, event: Event | None) -> None:
        match event:
            case MessageStored(message=message):
                messages = [message]
            case TurnSnapshot(messages=messages):
                pass
            case _:
                return
        said = [m for m in messages if m["role"] in (MessageRole.ASSISTANT, MessageRole.TOOL_CALL)]
        replies = {(m["tool_call"] or {}).get("reply_id") or m["id"] for m in said}
        if not replies <= self._replies:
            self._by_id = await _stored_fields(self._turn)
            self._replies |= replies
        for message in said:
            if message["id"] in self._by_id:
                message["provider_fields"] = self._by_id[message["id"]]


def _raise_end(turn: Turn, event: Event | None) -> None:
    """Raise AmberError if the event ends the turn otherwise than completed."""
    match event:
        case TurnFailed(code=code, message=message) | TurnIncomplete(code=code, message=message):
            raise AmberError(message, code=code, turn_id=str(turn.pk))
        case TurnCancelled():
            raise Conflict("The turn was cancelled.", turn_id=str(turn.pk))


@make_async
def _load_turn(turn: Turn) -> Turn:
    """Return the turn as it is stored now. Raises Missing."""
    try:
        return Turn.objects.get(pk=turn.pk)
    except Turn.DoesNotExist:
        raise Missing from None


@make_async
def _stored_fields(turn: Turn) -> dict[str, Any]:
    stored = Turn.objects.filter(pk=turn.pk).select_related("assistant").first()
    return shown_fields_of(stored) if stored else {}


@make_async
def _cancel(turn: Turn) -> None:
    try:
        cancel_turn(turn)
    except Missing:
        pass  # deleted meanwhile: nobody runs it
