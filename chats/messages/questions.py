"""Find the question that a turn answers, and name a chat by its first one."""

from typing import Final

from amber.lib.errors import Invalid
from chats.messages import transcript
from chats.models import ChatMessage
from engine.messages import ASKING_ROLES

CHAT_NAME_CHARS: Final = 80


def question_at(message: ChatMessage) -> ChatMessage:
    """Return the nearest question at or before this message. Raises Invalid (no_human_message)."""
    for earlier in reversed(transcript.path(message.chat_id, message.pk)):
        if earlier.role in ASKING_ROLES:
            return earlier
    raise Invalid(code="no_human_message")


def name_by(question: ChatMessage) -> str:
    """Return the name of a chat that begins with this question; empty if the question is hidden."""
    first_line = question.content.strip().partition("\n")[0]
    return "" if question.hidden else first_line[:CHAT_NAME_CHARS].rstrip()
