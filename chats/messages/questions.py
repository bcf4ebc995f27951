"""Find the question that a turn answers, and name a chat by its first one."""

from collections.abc import Sequence
from typing import Final

from amber.lib.errors import Invalid
from amber.lib.names import plain_name
from chats.messages import transcript
from chats.models import ChatMessage
from engine.messages import ASKING_ROLES
from libraries.models import File

CHAT_NAME_CHARS: Final = 80


def question_at(message: ChatMessage) -> ChatMessage:
    """Return the nearest question at or before this message. Raises Invalid (no_human_message)."""
    for earlier in reversed(transcript.path(message.chat_id, message.pk)):
        if earlier.role in ASKING_ROLES:
            return earlier
    raise Invalid(code="no_human_message")


def name_by(question: ChatMessage, files: Sequence[File] = ()) -> str:
    """Return the name of a chat that begins with this question; empty if the question is hidden.

    A question without words is named after the first of its files.
    """
    words = question.content.strip() or next((file.name for file in files), "")
    first_line = words.partition("\n")[0]
    return "" if question.hidden else plain_name(first_line[:CHAT_NAME_CHARS])
