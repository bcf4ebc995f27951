"""Store one reply of the model as messages: its answer, or one for each call it asks for.

This is part of the caller's transaction, which holds the locks of turn and chat.
"""

from collections.abc import Iterable
from typing import Any

import structlog

from chats.context.knowledge import cited_in
from chats.messages.tool_calls import store_call
from chats.messages.transcript import append_to_turn
from chats.messages.wire import MessageWire
from chats.models import Chat, Turn
from chats.turns.account import token_fields
from engine.loop_events import Reply
from engine.messages import MessageRole
from engine.provider.model import Usage
from engine.provider_fields import StoredFields, fitting_reasoning, is_too_long, stored_form
from engine.tool_calls import ToolCall

logger = structlog.get_logger(__name__)


def store_reply_rows(
    turn: Turn,
    chat: Chat | None,
    reply: Reply,
    usage: Usage,
    passages: Iterable[dict[str, Any]],
    *,
    sender: str,
) -> list[MessageWire]:
    """Write the rows and return their wire forms.

    The first one has the reply's text, reasoning, citations and token counts. `sender` marks the model that
    gets its own fields back.
    """
    about: dict[str, Any] = {"assistant": turn.assistant, "step": reply.step}
    whole: dict[str, Any] = {
        "content": reply.text,
        "reasoning": fitting_reasoning(reply.reasoning),
        "citations": cited_in(reply.text, passages),
        **token_fields(usage),
    }
    if not reply.calls:
        kept = _provider_fields(sender, reply)
        return [
            append_to_turn(
                turn,
                chat,
                role=MessageRole.ASSISTANT,
                provider_fields=kept,
                **about,
                **whole,
            )
        ]
    return [
        append_to_turn(
            turn,
            chat,
            role=MessageRole.TOOL_CALL,
            tool_call=store_call(call, reply_id(turn, reply.step)),
            provider_fields=_provider_fields(sender, None if number else reply, call),
            **about,
            **({} if number else whole),
        )
        for number, call in enumerate(reply.calls)
    ]


def _provider_fields(
    sender: str, reply: Reply | None, call: ToolCall | None = None
) -> StoredFields | None:
    """Return the fields to store with one row, or None if there are none, or they are too long: one
    row must not fill a page of a chat's export."""
    stored = stored_form(
        sender,
        message=reply.provider_fields if reply else {},
        call=call.provider_fields if call else {},
    )
    if stored is None or not is_too_long(stored):
        return stored
    logger.warning("provider_fields_too_long", sender=sender)
    return None


def reply_id(turn: Turn, step: int) -> str:
    """Return an id unique over all turns of a chat: calls with the same one are one reply."""
    return f"{turn.pk}:{step}"
