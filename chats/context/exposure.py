"""Read from a turn's rows what it has read that strangers wrote, and name the mark around it.

The rows are those that the model is shown, so whoever runs the turn next reads the same
(`engine.trust`). Of recalled earlier talk the recall says whether results of tools, passages or
files are part of it. It neither reads nor writes rows.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from django.utils.crypto import salted_hmac

from chats.context.findings import RetrievedContext
from chats.messages.tool_calls import read_call
from chats.models import ChatMessage, Turn
from engine.messages import Message, MessageRole
from engine.trust import (
    EARLIER_TALK,
    MEMORIES,
    TOOL_RESULTS,
    Exposure,
    ReadMessage,
    exposure_of,
)
from tools.calling.registry import own_words_names

MARK_CHARS: Final = 8
"""Four billion marks, at some five tokens around each text. Nobody can guess a chat's: text that contains it
loses it."""


def read_exposure(
    turn: Turn, rows: Sequence[ChatMessage], found: RetrievedContext, prompts: Sequence[str]
) -> Exposure:
    """Return what the turn has read so far. Pure.

    Results that no turn wrote are the caller's, whatever their tools are called; those of a turn
    without a chat cannot be told apart.
    """
    is_posted = any(row.role == MessageRole.TOOL and row.step is None for row in rows)
    return exposure_of(
        [_read(row) for row in rows if row.role != MessageRole.ASSISTANT],
        prompts=prompts,
        more=[*_recalled_kinds(found), *([TOOL_RESULTS] if is_posted else ())],
        own_tools=own_words_names() if turn.chat_id else frozenset(),
    )


def _read(row: ChatMessage) -> ReadMessage:
    """Return the parts of a row that exposure depends on."""
    call = row.tool_call
    return Message(role=row.role, content=row.content, tool_call=read_call(call)) if call else row


def mark_of(turn: Turn) -> str:
    """Return the word that marks what strangers wrote: the same for a whole chat, so that requests
    begin alike, and not to be guessed by anybody outside it."""
    asked_by = (turn.organization_id, turn.user_id, turn.guest_id, turn.assistant_id)
    where = f"chat {turn.chat_id}" if turn.chat_id else f"asked {asked_by}"
    keyed = salted_hmac("chats.context.exposure", where, algorithm="sha256")
    return keyed.hexdigest()[:MARK_CHARS]


def _recalled_kinds(found: RetrievedContext) -> Iterator[str]:
    if found.memories:
        yield MEMORIES
    if any(block.is_untrusted for block in found.blocks.taken):
        yield EARLIER_TALK
