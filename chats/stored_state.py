"""A turn as Postgres has it: what viewers are told where the stream does not reach back."""

from dataclasses import dataclass
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from chats import transcript
from chats.endings import last_event
from chats.models import LIVE_STATUSES, Turn, TurnStatus
from chats.stream import encode, first_seq


@dataclass(frozen=True, slots=True)
class StoredState:
    """A turn as Postgres has it: `last` is the name and JSON of its last event once it is over."""

    seq: int
    snapshot_seq: int
    snapshot: bytes
    last: tuple[str, bytes] | None


@sync_to_async(thread_sensitive=False)
def state_of(turn_id: UUID) -> StoredState | None:
    try:
        return _read_state(turn_id)
    finally:
        connections.close_all()


def _read_state(turn_id: UUID) -> StoredState | None:
    with transaction.atomic():
        turn = Turn.objects.filter(pk=turn_id).select_for_update(no_key=True).first()
        if turn is None:
            return None
        messages = transcript.messages_of_turn(turn)
    text = {turn.step + 1: turn.partial_text} if turn.partial_text else {}
    is_over = turn.status not in LIVE_STATUSES or turn.status == TurnStatus.WAITING
    seq = max(turn.seq, first_seq(turn.attempt))
    snapshot_seq = seq - 1 if is_over else seq
    snapshot = encode(
        "turn.snapshot",
        seq=snapshot_seq,
        turn_id=turn.pk,
        fields={"messages": messages, "text": text},
    )
    return StoredState(seq, snapshot_seq, snapshot, _last(turn, seq) if is_over else None)


def _last(turn: Turn, seq: int) -> tuple[str, bytes]:
    name, fields = last_event(turn)
    return name, encode(name, seq=seq, turn_id=turn.pk, fields=fields)
