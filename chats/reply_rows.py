"""The messages that one reply of the model becomes: its answer, or one for each call it asks for.

Part of the caller's transaction, which holds turn and chat.
"""

from collections.abc import Iterable
from typing import Any

from chats.knowledge import cited_in
from chats.models import Chat, MessageRole, Turn
from chats.transcript import append_to_turn
from chats.turn_account import token_fields
from engine.happenings import Reply
from engine.model import Usage


def store_reply_rows(
    turn: Turn,
    chat: Chat | None,
    reply: Reply,
    usage: Usage,
    passages: Iterable[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Their wire forms. The first carries the reply's text, what it cites, and token counts."""
    about: dict[str, Any] = {"assistant": turn.assistant, "step": reply.step}
    whole: dict[str, Any] = {
        "content": reply.text,
        "citations": cited_in(reply.text, passages),
        **token_fields(usage),
    }
    if not reply.calls:
        return [append_to_turn(turn, chat, role=MessageRole.ASSISTANT, **about, **whole)]
    return [
        append_to_turn(
            turn,
            chat,
            role=MessageRole.TOOL_CALL,
            tool_call={
                "id": call.id,
                "name": call.name,
                "arguments": call.arguments,
                "reply_id": reply_id(turn, reply.step),
            },
            **about,
            **({} if number else whole),
        )
        for number, call in enumerate(reply.calls)
    ]


def reply_id(turn: Turn, step: int) -> str:
    """Unique over all turns of a chat: calls with one id are one reply."""
    return f"{turn.pk}:{step}"
