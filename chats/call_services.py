"""Begin and continue stored chats for programs, which send what is new and ask for an answer.

Clients of the public API send messages in OpenAI's form; here they are entries, as in `Turn.input`.
What the chat holds already is never written again, and never changed.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from accounts.tenancy.idempotency import settle
from amber.lib.database.cached_update import insert_row
from amber.lib.errors import Invalid
from assistants.models import Assistant
from chats.context.call_options import CallOptions
from chats.events.stream import announce_cancel
from chats.messages import transcript
from chats.messages.questions import name_by, question_at
from chats.messages.turn_messages import open_calls
from chats.messages.wire import turn_wire
from chats.models import Chat, ChatMessage, Turn
from chats.turns.admission import release_budgets
from chats.turns.endings import lock_turn
from chats.turns.start import begin_turn, lock_idle_chat
from engine.messages import ASKING_ROLES, MessageRole
from engine.provider_fields import reasoning_in
from libraries.models import File

Entry = Mapping[str, Any]

_BATCH: Final = 500
_MOST_NAMED: Final = 10


@transaction.atomic(durable=True)
def ask_in_chat(
    chat: Chat | None,
    principal: Principal,
    *,
    entries: Sequence[Entry],
    assistant: Assistant | None,
    options: CallOptions,
    files: Sequence[File] = (),
    claim: IdempotencyRecord | None = None,
) -> Turn:
    """Append the entries at the end of the chat's active branch, or begin a chat with them, and answer them.

    `files` are those the entries name, not yet saved. Results must be of calls that the chat's last
    turn returned to its client. Raises Conflict (turn_in_progress), Invalid (no such call waits;
    no_human_message) and RateLimited (budget_exceeded).
    """
    if chat is None:
        chat = transcript.new_chat(principal, assistant=assistant)
        chat.save(force_insert=True)
    else:
        chat = lock_idle_chat(chat.pk)
        _check_results(chat.active_leaf, entries)
    for file in files:
        file.save(force_insert=True)
    written = _append(chat, entries, assistant, {str(file.pk): file.pk for file in files})
    question = next((m for m in reversed(written) if m.role in ASKING_ROLES), None)
    question = question or question_at(written[-1])
    turn = begin_turn(chat, principal, question, assistant, tip=written[-1], options=options)
    chat.name = chat.name or name_by(question)
    transcript.move_leaf(chat, written[-1])
    settle(claim, status=201, answer=turn_wire(turn))
    return turn


@transaction.atomic(durable=True)
def forget_turn(turn: Turn) -> None:
    """Delete a stateless turn with all that was said; its worker notices, and stops.

    Of a turn in a chat only what its caller kept with it is deleted; the chat stays as it was.
    Idempotent.
    """
    locked, chat = lock_turn(turn.pk, turn.chat_id, Turn.objects.all())
    if locked is None:
        return
    if chat is not None:
        locked.options = {n: v for n, v in locked.options.items() if n != "echo"}
        locked.save(update_fields=["options", "updated_at"])
        return
    if locked.is_live:
        release_budgets([locked])
        transaction.on_commit(partial(announce_cancel, locked.pk))
    locked.delete()


# -- Private: inside the caller's transaction ------------------------------------------------------


def _check_results(tip: ChatMessage | None, entries: Sequence[Entry]) -> None:
    """Raise Invalid unless each result belongs to a different call that the last turn left open."""
    answered = [e["tool_call"]["id"] for e in entries if e["role"] == MessageRole.TOOL]
    if not answered:
        return
    last = Turn.objects.filter(pk=tip.turn_id).first() if tip and tip.turn_id else None
    waiting = {call.id for call in open_calls(last)} if last else set()
    unknown = [call_id for call_id in answered if call_id not in waiting]
    if unknown or len(set(answered)) < len(answered):
        named = ", ".join((unknown or answered)[:_MOST_NAMED])
        said = f"The chat is not waiting for a result of {named}."
        raise Invalid(said, fields={"messages": [said]})


def _append(
    chat: Chat,
    entries: Sequence[Entry],
    assistant: Assistant | None,
    file_ids: Mapping[str, UUID],
) -> list[ChatMessage]:
    tip = chat.active_leaf
    written: list[ChatMessage] = []
    for entry in entries:
        tip = transcript.new_row(
            chat,
            tip,
            role=entry["role"],
            content=entry["content"],
            file_id=file_ids.get(entry.get("file_id", "")),
            tool_call=entry.get("tool_call"),
            provider_fields=entry.get("provider_fields"),
            reasoning=reasoning_in(entry.get("provider_fields")),
            assistant=assistant if entry["role"] == MessageRole.ASSISTANT else None,
        )
        written.append(tip)
    if len(written) == 1:
        insert_row(written[0])
    else:
        ChatMessage.objects.bulk_create(written, batch_size=_BATCH)
    return written
