"""Read what a turn has stored so far: its messages by step, and the calls that are still open.

Here, too, are the events by which an attempt begins. Nothing is written. A stateless turn keeps its
messages in its own row (`Turn.output`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from chats.events.stream import Event, first_seq
from chats.messages.hidden_fields import seal_fields
from chats.messages.tool_calls import read_call
from chats.messages.transcript import attach_related, messages_to_wire
from chats.messages.wire import MessageWire, message_wire, turn_wire
from chats.models import ChatMessage, Turn
from engine.messages import MessageRole
from engine.tool_calls import ToolCall


def messages_of_turn(turn: Turn) -> list[MessageWire]:
    """Return the wire form of what this turn wrote, in order: four queries at most."""
    return [message for _, message in steps_of_turn(turn)]


def entries_of_turn(turn: Turn) -> list[dict[str, Any]]:
    """Return `messages_of_turn` with `provider_fields`: for the model, never for viewers.

    Five queries at most, none for a stateless turn.
    """
    return with_provider_fields(messages_of_turn(turn), provider_fields_of(turn))


def shown_entries_of_turn(turn: Turn) -> list[dict[str, Any]]:
    """Return `entries_of_turn` as a client may have them: with no thoughts to read that the
    assistant hides."""
    return with_provider_fields(messages_of_turn(turn), shown_fields_of(turn))


def shown_fields_of(turn: Turn) -> dict[str, Any]:
    """Return `provider_fields_of` as a client may have them."""
    fields = provider_fields_of(turn)
    if turn.assistant is None or not turn.assistant.hide_reasoning:
        return fields
    return {pk: seal_fields(stored, turn.organization_id) for pk, stored in fields.items()}


def provider_fields_of(turn: Turn) -> dict[str, Any]:
    """Return the turn's `provider_fields` by message id, where there are any. One query at most."""
    if turn.chat_id is None:
        return dict((turn.output or {}).get("provider_fields", {}))
    rows = ChatMessage.objects.filter(turn=turn, provider_fields__isnull=False)
    return {str(pk): fields for pk, fields in rows.values_list("pk", "provider_fields")}


def with_provider_fields(
    messages: Iterable[Mapping[str, Any]], by_id: Mapping[str, Any]
) -> list[dict[str, Any]]:
    return [
        {**m, "provider_fields": by_id[m["id"]]} if m["id"] in by_id else dict(m) for m in messages
    ]


def steps_of_turn(turn: Turn) -> list[tuple[int, MessageWire]]:
    """Return `messages_of_turn`, each with its step (of a stateless turn: the last stored one)."""
    if turn.chat_id is None:
        return [(turn.step, message) for message in (turn.output or {}).get("messages", [])]
    rows = list(
        ChatMessage.objects.filter(turn=turn, step__isnull=False)
        .defer("search")
        .order_by("position")
    )
    attach_related(rows)
    return [
        (row.step or 0, message) for row, message in zip(rows, messages_to_wire(rows), strict=True)
    ]


def first_events(turn: Turn) -> list[Event]:
    """Return the first events of this attempt: the turn, or after a break what is stored.

    No query if nothing is stored yet.
    """
    if turn.waiting_calls and turn.seq > first_seq(turn.attempt):
        return []  # it continues where it waited, and every viewer has its events
    if turn.attempt == 1 and turn.seq == 0:
        siblings = turn.question_sibling_ids
        question = message_wire(turn.question, sibling_ids=siblings) if turn.question else None
        return [("turn.started", {"turn": turn_wire(turn), "message": question})]
    restarted = ("turn.restarted", {"attempt": turn.attempt, "step": turn.step + 1})
    stored = steps_of_turn(turn)
    return [
        restarted,
        *(("message.stored", {"step": step, "message": message}) for step, message in stored),
    ]


def open_calls(turn: Turn) -> list[ToolCall]:
    """Return the calls of the turn's last stored step that have no result, in order."""
    rows = _rows_of_last_step(turn)
    finished = [row["tool_call"]["id"] for row in rows if row["role"] == MessageRole.TOOL]
    calls = []
    for row in rows:
        if row["role"] != MessageRole.TOOL_CALL:
            continue
        call = row["tool_call"]
        if call["id"] in finished:
            # One result ends one call: without a chat these are all steps, which may repeat ids.
            finished.remove(call["id"])
        else:
            calls.append(read_call(call))
    return calls


def _rows_of_last_step(turn: Turn) -> list[dict[str, Any]]:
    """Return role and tool call of each message, in order."""
    if turn.step == 0:
        return []
    if turn.chat_id is None:
        said = (turn.output or {}).get("messages", [])
        return [{"role": m["role"], "tool_call": m["tool_call"]} for m in said]
    rows = ChatMessage.objects.filter(turn=turn, step=turn.step).order_by("position")
    return list(rows.values("role", "tool_call"))
