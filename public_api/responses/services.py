"""Start responses, alone or after another one, and find them.

A response is a turn. The conversation before it consists of the earlier turn's input and of what
that turn wrote, or is the stored chat of that turn.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import takewhile
from typing import Final

from django.conf import settings
from django.utils import timezone

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from amber.lib.errors import AmberError, Conflict, Invalid, Missing
from chats.messages import transcript
from chats.messages.turn_messages import open_calls, shown_entries_of_turn
from chats.models import ChatMessage, Turn
from engine.provider_fields import brought_fields
from public_api.openai.answerers import Answerer
from public_api.openai.growing_answer import show_answer
from public_api.openai.messages import SENDER, Entry, RequestMessage
from public_api.openai.sent_images import keep_images
from public_api.responses.items import Item, Reference, call_fault, entries_of, messages_of
from public_api.responses.names import RequestEcho, turn_id_in
from public_api.responses.request import ResponseRequest
from public_api.services import start_turn

PREVIOUS: Final = "previous_response_id"
MAX_LISTED: Final = 1_000
"""The most messages of a stored chat that are listed as what a response was asked."""


def start_response(
    caller: Principal,
    request: ResponseRequest,
    answerer: Answerer,
    *,
    claim: IdempotencyRecord | None = None,
) -> Turn:
    """Start a turn for the request.

    Raises as `start_turn`; Missing (no such response before, or item), Invalid (calls without
    results, results without calls), Conflict (the response before has not ended, or its chat has
    gone on since).
    """
    before = _turn_before(caller, request.asked.previous)
    messages = messages_of(_resolve_items(caller, request.items))
    chat_id = request.chat_id
    said: Sequence[Entry] = ()
    if before is not None and before.chat_id is not None:
        chat_id = _chat_after(before)
    elif not chat_id:
        said = _said_until(before)
        _check_calls(messages, before)
    try:
        return start_turn(
            caller,
            messages=messages,
            before=said,
            options=answerer.options(request.options),
            assistant=answerer.assistant,
            chat_id=chat_id,
            claim=claim,
        )
    except AmberError as error:
        error.fields = _rename_fields(error)
        raise


def response_turn(caller: Principal, name: str) -> Turn:
    """Return the turn of a response by its id. One query. Raises Missing."""
    turn = _find_turn(caller, name) if name.startswith("resp_") else None
    if turn is None:
        raise Missing(f"There is no response {name}, or you have no access to it.")
    return turn


def asked_of(turn: Turn) -> list[Entry]:
    """Return what a response was asked, oldest first. Four queries at most.

    For a stateless one its whole conversation, for one in a stored chat what was new there (the
    newest MAX_LISTED).
    """
    if turn.chat_id is None:
        return list((turn.input or {}).get("messages", ()))
    written = ChatMessage.objects.filter(turn=turn, step__isnull=False).order_by("position")
    first = written.values_list("parent_id", flat=True).first()
    rows = transcript.path(turn.chat_id, first or turn.tip_id, max_messages=MAX_LISTED)
    # Back to what an earlier turn wrote; messages that started no turn have none.
    new = takewhile(lambda row: row.turn_id in (None, turn.pk), reversed(rows))
    return [_entry(row) for row in new][::-1]


# -- Private: what came before ---------------------------------------------------------------------


def _entry(row: ChatMessage) -> Entry:
    file_id = {"file_id": str(row.file_id)} if row.file_id else {}
    return {"role": row.role, "content": row.content, "tool_call": row.tool_call, **file_id}


def _turn_before(caller: Principal, name: str | None) -> Turn | None:
    if name is None:
        return None
    try:
        turn = response_turn(caller, name)
    except Missing as error:
        error.fields = {PREVIOUS: [error.message]}
        raise
    if turn.is_live:
        raise Conflict(code="turn_in_progress", turn_id=str(turn.pk))
    return turn


def _chat_after(before: Turn) -> str:
    """Return the chat, which must not have gone on since. One query."""
    chat = before.chat
    if chat is None or chat.active_leaf is None or chat.active_leaf.turn_id != before.pk:
        said = "The chat has gone on since this response."
        raise Conflict(said, fields={PREVIOUS: [said]})
    return str(chat.pk)


def _said_until(before: Turn | None) -> list[Entry]:
    """Return what the next turn begins with, and keep its images as long as that turn."""
    if before is None:
        return []
    entries = entries_of(before.input, shown_entries_of_turn(before))
    kept = timedelta(seconds=settings.AMBER_STATELESS_KEEP_SECONDS)
    keep_images(
        (entry["file_id"] for entry in entries if "file_id" in entry), timezone.now() + kept
    )
    return entries


def _check_calls(messages: Sequence[RequestMessage], before: Turn | None) -> None:
    """Raise Invalid for calls without results, or results without calls."""
    waiting = [call.id for call in open_calls(before)] if before is not None else []
    if fault := call_fault(messages, waiting):
        raise Invalid(fault, fields={"input": [fault]})


def _resolve_items(caller: Principal, items: Sequence[Item]) -> list[RequestMessage]:
    """Replace references to earlier items. One query for each item. Raises Missing."""
    return [_item(caller, item) if isinstance(item, Reference) else item for item in items]


def _item(caller: Principal, named: Reference) -> RequestMessage:
    """Return an item of an earlier response: its text, or one of its calls."""
    turn = _find_turn(caller, named.id)
    for item_id, message in _items_of(turn) if turn is not None else ():
        if item_id == named.id:
            return message
    said = f"There is no item {named.id}."
    raise Missing(said, fields={"input": [said]})


def _find_turn(caller: Principal, name: str) -> Turn | None:
    """Return the turn of the stored response that the id of itself, or of an item of it, names."""
    pk = turn_id_in(name)
    turn: Turn | None = Turn.objects.visible_to(caller).filter(pk=pk).first() if pk else None
    asked = RequestEcho.of(turn) if turn is not None else None
    return turn if asked is not None and asked.is_stored else None


def _items_of(turn: Turn) -> Iterable[tuple[str, RequestMessage]]:
    client_tools = frozenset(tool["name"] for tool in turn.options.get("tools", ()))
    answer = show_answer(shown_entries_of_turn(turn), client_tools=client_tools)
    yield f"msg_{turn.pk.hex}", RequestMessage(role="assistant", parts=(answer.text,))
    for number, call in enumerate(answer.calls):
        sender = answer.fields.get(SENDER, "")
        item = RequestMessage(
            role="assistant",
            calls=(call,),
            sender=sender,
            provider_fields=brought_fields(answer.fields, sender=sender),
        )
        yield f"fc_{turn.pk.hex}_{number}", item


def _rename_fields(error: AmberError) -> dict[str, list[str]] | None:
    """Rename an error's fields: the client sent items, and knows no messages."""
    if not error.fields:
        return None
    return {
        "input" if name.startswith("messages") else name: list(said)
        for name, said in error.fields.items()
    }
