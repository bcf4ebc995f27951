"""Make the rows that tests of chats begin with, and name the addresses under test."""

from datetime import timedelta
from itertools import count
from typing import Any

from django.db.models import F
from django.utils import timezone

from accounts.models import User
from assistants.models import Assistant
from chats.messages import transcript
from chats.messages.imported_tree import build_tree
from chats.models import Chat, ChatMessage, Turn
from libraries.models import File
from tests.fixtures.personas import Persona

ALL = "/api/v1/chats/"
ABSENT = "01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00"
"""An id that no row has."""

_numbers = count(1)


def of_chat(chat: Chat, verb: str = "") -> str:
    return f"{ALL}{chat.pk}/{verb}"


def messages(chat: Chat) -> str:
    return of_chat(chat, "messages/")


def of_message(message: ChatMessage, verb: str = "") -> str:
    return f"/api/v1/messages/{message.pk}/{verb}"


def of_turn(turn: Turn, verb: str = "") -> str:
    return f"/api/v1/turns/{turn.pk}/{verb}"


def new_assistant(persona: Persona, **fields: Any) -> Assistant:
    number = next(_numbers)
    fields = {"name": f"Assistant {number}", "slug": f"assistant-{number}"} | fields
    return Assistant.objects.create(organization=persona.organization, user=persona.user, **fields)


def new_chat(persona: Persona, **fields: Any) -> Chat:
    return Chat.objects.create(organization=persona.organization, user=persona.user, **fields)


def new_file(persona: Persona, **fields: Any) -> File:
    number = next(_numbers)
    fields = {
        "name": "notes.txt",
        "mime_type": "text/plain",
        "file_hash": f"{number:064x}",
        "path": f"test-{number}",
        "size": 5,
        "text": "notes",
        "read_at": timezone.now(),
    } | fields
    return File.objects.create(organization=persona.organization, user=persona.user, **fields)


def say(
    chat: Chat, content: str = "Hi", *, role: str = "human", parent: Any = "the leaf", **fields: Any
) -> ChatMessage:
    """Store a message at the end of the active branch, or under `parent`, and move the leaf."""
    chat.refresh_from_db()
    above = chat.active_leaf if parent == "the leaf" else parent
    message = transcript.append(chat, above, role=role, content=content, **fields)
    transcript.move_leaf(chat, message)
    return message


def converse(chat: Chat, *contents: str) -> list[ChatMessage]:
    """Store questions and answers in turn."""
    return [
        say(chat, content, role="assistant" if number % 2 else "human")
        for number, content in enumerate(contents)
    ]


def fill(chat: Chat, length: int) -> list[ChatMessage]:
    """Write a long conversation at once."""
    given = [
        {"role": "assistant" if number % 2 else "human", "content": f"message {number}"}
        for number in range(length)
    ]
    rows = list(build_tree(chat, given).values())
    ChatMessage.objects.bulk_create(rows, batch_size=1_000)
    transcript.move_leaf(chat, rows[-1])
    return rows


def new_turn(chat: Chat, **fields: Any) -> Turn:
    """Make a turn over the chat's last message; queued unless another status is given."""
    chat.refresh_from_db()
    fields = {"question": chat.active_leaf, "tip": chat.active_leaf} | fields
    user: User | None = chat.user
    return Turn.objects.create(organization_id=chat.organization_id, chat=chat, user=user, **fields)


def expire(turn: Turn) -> None:
    """Let the lease run out: the worker has been silent for longer."""
    past = timezone.now() - timedelta(seconds=1)
    Turn.objects.filter(pk=turn.pk).update(lease_until=past)


def take_over(turn: Turn) -> None:
    """Do to a turn what another worker's sweep and claim do."""
    Turn.objects.filter(pk=turn.pk).update(
        status="running", fence=F("fence") + 1, attempt=F("attempt") + 1, worker="w2"
    )


def path_of(chat: Chat) -> list[tuple[str, str]]:
    """Return (role, content) of the active branch, oldest first."""
    chat.refresh_from_db()
    return [(m.role, m.content) for m in transcript.path(chat.pk, chat.active_leaf_id)]


def error_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def fields_of(answer: Any) -> list[str]:
    """Return the names of the fields that a 400 complains about."""
    assert answer.status_code == 400, answer.json()
    return sorted(answer.json()["error"].get("fields", {}))
