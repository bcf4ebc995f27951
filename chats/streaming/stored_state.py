"""Read a turn from Postgres, for viewers whom the stream no longer reaches."""

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from amber.lib.database.connections import make_async
from chats.events.stream import encode, first_seq
from chats.messages.turn_messages import messages_of_turn
from chats.models import Turn
from chats.turns.endings import last_event
from chats.turns.queue_place import place_of
from engine.events import LIVE_STATUSES, TurnStatus


@dataclass(frozen=True, slots=True)
class StoredState:
    """A turn as Postgres has it, up to event `seq`.

    `resting` is the name and JSON of that event if no worker will emit another one: the turn is
    over (`is_over`), or waits for somebody.
    """

    seq: int
    snapshot_seq: int
    snapshot: bytes
    resting: tuple[str, bytes] | None
    is_over: bool


@make_async
def place_in_queue(turn_id: UUID) -> bytes | None:
    """Return the place of a queued turn, as the JSON of its event; None for any other. Up to two queries."""
    turn = Turn.objects.filter(pk=turn_id).first()
    place = place_of(turn) if turn else None
    return place and encode("queue.position", seq=0, turn_id=turn_id, fields={**place})


@make_async
def state_of(turn_id: UUID) -> StoredState | None:
    """Return the turn's stored state, or None if it is deleted. Up to five queries."""
    with transaction.atomic():
        # Locked, so that the messages read next belong to the same `seq` as the turn.
        turn = Turn.objects.filter(pk=turn_id).select_for_update(no_key=True).first()
        if turn is None:
            return None
        messages = messages_of_turn(turn)
    step = turn.step + 1
    text = {step: turn.partial_text} if turn.partial_text else {}
    reasoning = {step: turn.partial_reasoning} if turn.partial_reasoning else {}
    is_over = turn.status not in LIVE_STATUSES
    is_resting = is_over or turn.status == TurnStatus.WAITING
    # An attempt that has stored nothing yet numbers its events from here on.
    seq = max(turn.seq, first_seq(turn.attempt))
    # The last event has the number `seq` itself, and is sent behind the snapshot.
    snapshot_seq = seq - 1 if is_resting else seq
    snapshot = encode(
        "turn.snapshot",
        seq=snapshot_seq,
        turn_id=turn.pk,
        fields={"messages": messages, "text": text, "reasoning": reasoning},
    )
    resting = _last(turn, seq) if is_resting else None
    return StoredState(seq, snapshot_seq, snapshot, resting, is_over)


def _last(turn: Turn, seq: int) -> tuple[str, bytes]:
    name, fields = last_event(turn)
    return name, encode(name, seq=seq, turn_id=turn.pk, fields=fields)
