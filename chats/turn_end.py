"""The end of a turn, for answers that are given at once and whole.

    ended = await wait_for_end(turn)

Waits on the event loop: no thread and no database connection is held meanwhile. Whoever asked and
went away needs no answer: then the turn is cancelled, unless it is to be kept.
"""

import asyncio
from contextlib import aclosing
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections

from amber.lib.errors import AmberError, Conflict, Missing, Unavailable
from chats.models import Turn, TurnStatus
from chats.services import cancel_turn
from chats.stream_view import turn_events

QUEUE_SECONDS = 60
"""How long a turn may wait for a worker, on top of the time it may take."""


async def wait_for_end(turn: Turn, *, is_kept: bool = False) -> Turn:
    """The turn as it is stored at its end, whole.

    `is_kept`: it goes on without us when our own task is cancelled. Raises AmberError when it ends
    otherwise than completed: with its code, or Conflict if it was cancelled; Unavailable if no
    worker ended it in AMBER_TURN_SECONDS and QUEUE_SECONDS.
    """
    try:
        async with asyncio.timeout(settings.AMBER_TURN_SECONDS + QUEUE_SECONDS):
            async with aclosing(turn_events(turn)) as events:
                async for _ in events:
                    pass
    except TimeoutError:
        await _cancelled(turn)
        raise Unavailable("No worker has answered in time.", turn_id=str(turn.pk)) from None
    except asyncio.CancelledError:
        if not is_kept:
            await _cancelled(turn)
        raise
    return _completed(await _stored(turn))


def _completed(turn: Turn) -> Turn:
    if turn.status == TurnStatus.COMPLETED:
        return turn
    if turn.status == TurnStatus.CANCELLED:
        raise Conflict("The turn was cancelled.", turn_id=str(turn.pk))
    said: dict[str, Any] = turn.error or {}
    raise AmberError(said.get("message", ""), code=said.get("code", ""), turn_id=str(turn.pk))


@sync_to_async(thread_sensitive=False)
def _stored(turn: Turn) -> Turn:
    """Raises Missing."""
    try:
        return Turn.objects.get(pk=turn.pk)
    except Turn.DoesNotExist:
        raise Missing from None
    finally:
        connections.close_all()


@sync_to_async(thread_sensitive=False)
def _cancelled(turn: Turn) -> None:
    try:
        cancel_turn(turn)
    except Missing:
        pass  # deleted meanwhile: nobody runs it
    finally:
        connections.close_all()
