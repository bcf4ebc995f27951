"""Make a chat with one of everything, and count what is left of it."""

from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from chats.digest import blocks
from chats.models import Chat, ChatMessage, MessageBlock, Turn
from chats.tests.rows import converse, new_file, new_turn, say
from libraries.models import Embedding, File
from memory.facts.facts import Fact, remember
from memory.models import Memory
from memory.owner import Owner
from tests.fixtures.personas import Persona


def new_stored_file(persona: Persona, **fields: Any) -> File:
    """Make a file whose bytes are in the storage."""
    file = new_file(persona, **fields)
    default_storage.save(file.path, ContentFile(b"notes"))
    return file


def furnish(chat: Chat, persona: Persona, **fields: Any) -> Memory:
    """Add messages on two branches, a file, a call, blocks with vectors, turns, a memory."""
    question, _ = converse(chat, "My cat is called Biscuit " * 40, "I see " * 40)
    turn = new_turn(chat, status="completed", assistant=chat.assistant, manifest={"model": "m"})
    ChatMessage.objects.filter(chat=chat).update(turn=turn)
    say(chat, "Or so " * 40, role="assistant", parent=question)
    say(chat, role="file", content="", file=new_stored_file(persona, **fields))
    call = {"id": "c", "name": "calculate", "arguments": "{}", "reply_id": None}
    say(chat, "42", role="tool", tool_call=call)
    for number in range(6):
        converse(chat, f"And {number}? " * 40, f"So {number}. " * 40)
    assert blocks.seal(chat.pk) > 1
    owner = Owner.asking(chat.organization_id, chat.user_id, chat.guest_id)
    return remember(owner, Fact("The cat is called Biscuit", evidence=[question.pk]))[0]


def rows_in(chat: Chat) -> dict[str, int]:
    """Count the chat's rows of each kind."""
    models = (ChatMessage, Turn, MessageBlock)
    counts = {model.__name__: model.objects.filter(chat=chat.pk).count() for model in models}
    return counts | {"Chat": Chat.objects.filter(pk=chat.pk).count()}


def is_gone(chat: Chat) -> bool:
    return not any(rows_in(chat).values())


def is_stored(file: File) -> bool:
    return default_storage.exists(file.path)


def cached_vectors() -> int:
    return Embedding.objects.count()
