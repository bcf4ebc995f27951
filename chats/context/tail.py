"""Read the end of the conversation a turn answers: its newest messages, and its first prompts.

No more than `AMBER_CONTEXT_TAIL_TOKENS` of a chat are read, from the beginning of a sealed block
on: a chat of 10,000 messages costs what one of 100 costs, and consecutive requests begin alike.
What was said before is recalled by relevance (`chats.context.recall`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings

from chats.messages import transcript
from chats.messages.hidden_fields import open_fields
from chats.messages.tool_calls import read_call
from chats.messages.turn_messages import entries_of_turn
from chats.models import ChatMessage, Turn
from engine.context.blocks import SealedBlock, tail_start
from engine.messages import ASKING_ROLES, Attachment, Author, Message, MessageFields, MessageRole
from engine.provider_fields import returned_to
from engine.text.tokens import USUAL_BYTES_PER_TOKEN
from engine.tool_calls import CallFields
from libraries.files.attachments import UNREADABLE, attachment_of
from libraries.models import File

Shorten = Callable[[str], str]
"""Returns as much of a file's text as a model shall read."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the conversation. When it `is_cut`, `opening` holds the chat's first prompts.

    Blocks that end before the position `sealed_before` may be recalled (0: there are none).
    """

    messages: list[ChatMessage]
    opening: list[str] = field(default_factory=list)
    sealed_before: int = 0
    is_cut: bool = False

    @property
    def has_image(self) -> bool:
        files = (message.file for message in self.messages if message.file_id)
        return any(file and file.is_image and not file.is_expired for file in files)

    @property
    def unread_files(self) -> list[File]:
        """Files that were posted and that nobody has read yet: mostly the background was faster."""
        posted = (m.file for m in self.messages if m.role == MessageRole.FILE and not m.tool_call)
        return [file for file in posted if file and file.is_waiting and not file.is_expired]

    def read_files(self) -> None:
        """Read them: up to a minute for each. Call it outside of a transaction."""
        if unread := self.unread_files:
            from libraries.files.reading import read_files  # what reads files takes megabytes

            read_files(unread)


def read_tail(turn: Turn, blocks: Sequence[SealedBlock]) -> Tail:
    """Return the newest messages within the tail's budget: one query, three when it is cut.

    `blocks` are the newest ones of the turn's path, oldest first, at least `blocks_in` if there are so many.
    """
    if turn.chat is None:
        return Tail(_stateless_messages(turn))
    limit_tokens = settings.AMBER_CONTEXT_TAIL_TOKENS
    start = tail_start(blocks, limit_tokens=limit_tokens)
    found = transcript.path(
        turn.chat.pk,
        turn.tip_id,
        from_position=start,
        # With blocks `from_position` is the limit, in tokens; the bytes are a bound beside it.
        max_bytes=limit_tokens * USUAL_BYTES_PER_TOKEN * (2 if start else 1),
        through=turn.question,
        brief=True,
        author=turn.assistant,
    )
    if not found or found[0].parent_id is None:
        return Tail(found)
    opening = [m.content for m in transcript.opening(found[0])]
    is_whole = bool(start) and found[0].position <= start
    messages = found if is_whole else _from_a_question(found)
    sealed_before = messages[0].position if blocks else 0
    return Tail(messages, opening, sealed_before=sealed_before, is_cut=True)


def blocks_in(limit_tokens: int) -> int:
    """Return how many blocks hold the tail: none is smaller than AMBER_BLOCK_TOKENS."""
    # So many tokens may begin and end in the middle of a block.
    return limit_tokens // settings.AMBER_BLOCK_TOKENS + 2


def _from_a_question(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Drop the part of an exchange that the cut left at the front."""
    for number, message in enumerate(messages):
        if message.role in ASKING_ROLES:
            return messages[number:]
    return messages


def _stateless_messages(turn: Turn) -> list[ChatMessage]:
    given = (turn.input or {}).get("messages", [])
    written = entries_of_turn(turn)
    files = _files_of([*given, *written])
    messages = []
    for m in [*given, *written]:
        message = ChatMessage(
            organization_id=turn.organization_id,
            role=m["role"],
            content=m["content"],
            tool_call=m.get("tool_call"),
            provider_fields=m.get("provider_fields"),
            assistant=turn.assistant if m["role"] == MessageRole.ASSISTANT else None,
            file=files.get(m.get("file_id")),
        )
        message.participant = m.get("name", "")
        messages.append(message)
    return messages


def _files_of(messages: Sequence[dict[str, Any]]) -> dict[str | None, File]:
    """Return the files of messages in their wire form, by id. No query if there are none."""
    ids = [m["file_id"] for m in messages if m.get("file_id")]
    return {str(file.pk): file for file in File.objects.filter(pk__in=ids)} if ids else {}


def as_engine_message(
    message: ChatMessage, *, vision: bool, sender: str = "", shorten: Shorten = str
) -> Message:
    """Convert a row. `sender` marks the answering model, which only gets its own fields back;
    `shorten` cuts the text of a file."""
    role, call = message.role, message.tool_call
    of_message: MessageFields = {}
    of_call: CallFields = {}
    if stored := message.provider_fields:
        kept = open_fields(stored, message.organization_id)
        of_message, of_call = returned_to(sender, kept)
    is_file = role == MessageRole.FILE
    return Message(
        role,
        message.content,
        message.created_at,
        _author(message) if role == MessageRole.ASSISTANT else None,
        read_call(call, of_call) if call else None,
        _attachment(message, vision=vision, shorten=shorten) if is_file else None,
        message.participant,
        of_message,
    )


def posted_file(message: ChatMessage) -> File | None:
    """Return the file that a person posted with this message; None for what a tool made."""
    is_posted = message.role == MessageRole.FILE and not message.tool_call
    file = message.file if is_posted else None
    return None if file is None or file.is_expired else file


def _attachment(message: ChatMessage, *, vision: bool, shorten: Shorten) -> Attachment | None:
    """Return what a `file` message shows; the text of a tool's file is not even loaded."""
    file = message.file
    if file is None or file.is_expired:
        return None
    if message.tool_call:
        return attachment_of(file, vision=vision)
    text = UNREADABLE.format(file.unreadable) if file.unreadable else file.text
    return attachment_of(file, vision=vision, text=text and shorten(text))


def _author(message: ChatMessage) -> Author | None:
    written_by = message.assistant
    return written_by and _make_author(written_by.pk, written_by.name, written_by.description)


@lru_cache(maxsize=256)
def _make_author(pk: UUID, name: str, description: str) -> Author:
    return Author(str(pk), name, description)
