"""End turns: write the last state, keep the text that was shown, close the stream with an event.

A turn that a worker runs is ended by that worker (`end_turn` inside its transaction); one that
nobody runs is ended from outside (`end_outside`). Text that was shown always becomes a message.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from amber.lib.errors import Missing
from chats.context.knowledge import cited_in
from chats.events.changes import tell_of_turn
from chats.events.stream import Event, next_attempt, publish_outside
from chats.messages import transcript
from chats.messages.turn_messages import messages_of_turn
from chats.messages.wire import MessageWire
from chats.models import Chat, Turn, TurnQuerySet
from chats.turns.admission import release_budgets
from chats.turns.listeners import announce
from engine.events import EVENT_TYPES, TurnStatus
from engine.messages import MessageRole
from engine.provider_fields import fitting_reasoning


@dataclass(frozen=True, slots=True)
class TurnEnding:
    """How a turn ends: its last state and what goes with it."""

    status: TurnStatus
    error: dict[str, Any] | None = None
    finish_reason: str = ""


def end_turn(
    turn: Turn,
    chat: Chat | None,
    ending: TurnEnding,
    *,
    passages: Iterable[dict[str, Any]] = (),
) -> list[MessageWire]:
    """Put the turn into its last state; return the message that shown text became, if any.

    `passages` are those it may cite. The caller holds the locks of chat and turn, and saves the
    turn.
    """
    stored = []
    if turn.partial_text.strip():
        text, step = turn.partial_text, turn.step + 1
        stored.append(
            transcript.append_to_turn(
                turn,
                chat,
                role=MessageRole.ASSISTANT,
                content=text,
                reasoning=fitting_reasoning(turn.partial_reasoning),
                assistant=turn.assistant,
                citations=cited_in(text, passages),
                step=step,
            )
        )
    turn.partial_text = turn.partial_reasoning = ""
    turn.leave(ending.status, worker=turn.worker)  # operators ask who ran it
    turn.error = ending.error
    turn.finish_reason = ending.finish_reason
    turn.waiting_calls = []
    turn.ended_at = timezone.now()
    release_budgets([turn])
    if chat is not None:
        turn.digest_at = turn.ended_at + timedelta(seconds=settings.AMBER_DIGEST_SECONDS)
    announce(turn)
    return stored


def last_event(turn: Turn) -> tuple[str, dict[str, Any]]:
    """Return name and fields of the last event of a turn that is over, or waits.

    It is named after the turn's status, and tells what its type has of what a turn can tell.
    """
    name = f"turn.{turn.status}"
    if turn.status in (TurnStatus.QUEUED, TurnStatus.RUNNING):
        raise ValueError(f"a turn that is {turn.status} has more to say")
    told = {
        "usage": turn.usage,
        "finish_reason": turn.finish_reason,
        "calls": turn.waiting_calls,
        **(turn.error or {}),
    }
    wanted = EVENT_TYPES[name].model_fields
    return name, {field: value for field, value in told.items() if field in wanted}


def lock_turn(
    turn_id: UUID, chat_id: UUID | None, among: TurnQuerySet
) -> tuple[Turn | None, Chat | None]:
    """Lock the chat, then the turn; return (None, None) if the turn is not `among` those any
    more."""
    try:
        chat = transcript.lock_chat(chat_id) if chat_id else None
    except Missing:
        return None, None
    turn = (
        among.select_related("tip", "assistant")
        # The turn alone: `tip` and `assistant` may be null, and Postgres refuses to lock an outer join.
        .select_for_update(no_key=True, of=("self",))
        .filter(pk=turn_id)
        .first()
    )
    return (turn, chat) if turn is not None else (None, None)


def end_outside(turn: Turn, chat: Chat | None, ending: TurnEnding) -> None:
    """End a turn that no worker runs, and tell its viewers after commit.

    Its events are numbered as those of one more attempt: greater than any a lost worker emitted.
    What that worker emitted and did not store is taken back by a snapshot of what is stored.
    """
    is_new = turn.attempt == 0 and turn.seq == 0
    end_turn(turn, chat, ending)
    # Read after `end_turn`, which has made a message of the text that was shown.
    stored = {"messages": messages_of_turn(turn), "text": {}}
    events: list[Event] = [] if is_new else [("turn.snapshot", stored)]
    events.append(last_event(turn))
    # A worker that only seemed lost holds the old fence: it can no longer write.
    turn.fence += 1
    turn.seq = next_attempt(turn.seq, turn.attempt) + len(events)
    turn.save()
    organization_id, pk, seq = turn.organization_id, turn.pk, turn.seq
    transaction.on_commit(lambda: publish_outside(organization_id, pk, seq, events))
    transaction.on_commit(partial(tell_of_turn, turn, events[-1][0]))
