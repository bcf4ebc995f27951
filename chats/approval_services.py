"""Decide on the calls a turn waits for, as a person approved or declined them."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from django.db import transaction

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from accounts.tenancy.access import find_visible
from accounts.tenancy.idempotency import settle
from amber.lib.errors import Conflict, Forbidden, Invalid, Missing
from assistants.models import Assistant
from chats.messages.wire import turn_wire
from chats.models import Turn
from chats.queue import enqueue_turn
from chats.turns.admission import readmit
from chats.turns.approval import apply_decisions, is_decided
from chats.turns.endings import lock_turn
from engine.events import TurnStatus

_NO_LONGER: Final = "You may not use this assistant any more. Stop the answer instead."


@transaction.atomic(durable=True)
def approve_calls(
    turn: Turn,
    principal: Principal,
    decisions: Mapping[str, bool],
    *,
    claim: IdempotencyRecord | None = None,
) -> Turn:
    """Decide on some of the waiting calls; the turn goes on once all of them are decided.

    A decision stays: sending it again changes nothing. Raises Conflict (turn_not_waiting, or
    conflict for a different decision), Forbidden (they may not use the assistant any more), Invalid
    (no such call waits) and RateLimited (budget_exceeded).
    """
    locked, _ = lock_turn(turn.pk, turn.chat_id, Turn.objects.all())
    if locked is None:
        raise Missing
    if locked.status not in (TurnStatus.WAITING, TurnStatus.QUEUED) or not locked.waiting_calls:
        raise Conflict(code="turn_not_waiting")
    if locked.assistant_id and not find_visible(Assistant, principal, locked.assistant_id):
        raise Forbidden(_NO_LONGER)
    _check(locked, decisions)
    locked.waiting_calls = apply_decisions(locked.waiting_calls, decisions)
    if locked.status == TurnStatus.WAITING and is_decided(locked.waiting_calls):
        locked.status = TurnStatus.QUEUED
        readmit(locked)
        transaction.on_commit(partial(enqueue_turn, locked.pk))
    locked.save(update_fields=["waiting_calls", "status", "is_budgeted", "updated_at"])
    settle(claim, status=200, answer=turn_wire(locked))
    return locked


def _check(turn: Turn, decisions: Mapping[str, bool]) -> None:
    """Raises Invalid, Conflict."""
    before = {entry["call_id"]: entry["approved"] for entry in turn.waiting_calls}
    unknown = [call_id for call_id in decisions if call_id not in before]
    if unknown:
        said = ["The turn is not waiting for this call."]
        raise Invalid(fields={f"decisions.{call_id}": said for call_id in unknown})
    for call_id, approved in decisions.items():
        if before[call_id] not in (None, approved):
            raise Conflict(f"The call {call_id} was already decided differently.")
    if turn.status == TurnStatus.QUEUED and not is_decided(turn.waiting_calls):
        raise Conflict(code="turn_not_waiting")
