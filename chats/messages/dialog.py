"""Reduce a chat to a plain conversation: what was asked, and what was answered."""

from dataclasses import dataclass
from uuid import UUID

from chats.messages.transcript import path
from chats.models import Chat, ChatMessage
from engine.messages import ASKING_ROLES, MessageRole


@dataclass(frozen=True, slots=True)
class DialogTurn:
    """One exchange of the plain conversation. `id` is the question's."""

    id: UUID
    user_query: str
    assistant_response: str


def dialog_turns(chat: Chat) -> list[DialogTurn]:
    """Return the active path as questions and their answers, oldest first.

    Several answers to one question become one text; unanswered questions, prompts, tools and files
    are left out.
    """
    turns: list[DialogTurn] = []
    asked: ChatMessage | None = None
    answers: list[str] = []
    for message in [*path(chat.pk, chat.active_leaf_id, brief=True), None]:
        if message is None or message.role in ASKING_ROLES:
            if asked is not None and answers:
                turns.append(DialogTurn(asked.pk, asked.content, "\n".join(answers)))
            asked, answers = message, []
        elif message.role == MessageRole.ASSISTANT and message.content.strip():
            answers.append(message.content)
    return turns
