"""Chats with small talk and a few facts, long enough to be sealed into blocks."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chats.messages import transcript
from chats.messages.imported_tree import build_tree
from chats.models import Chat, ChatMessage
from chats.tests.rows import new_assistant, new_chat
from tests.fixtures.personas import Persona

SMALL_TALK = [
    "It rained again and the bus to the office was late.",
    "A short walk in the evening may help.",
    "What should I read next, something not too long?",
    "A volume of essays would suit you, I think.",
    "My bicycle makes a strange noise when I brake.",
    "Look whether the pads are worn.",
    "The market was crowded, I came home without bread.",
    "Early in the morning it is calmer there.",
]
FACT = "My sister Clara adopted a cat called Biscuit."


@pytest.fixture(autouse=True)
def models(new_model: Any) -> None:
    new_model("text-model", default=True)


@pytest.fixture(autouse=True)
def small(settings: Any) -> None:
    settings.AMBER_BLOCK_TOKENS = 200
    settings.AMBER_CONTEXT_TAIL_TOKENS = 1_000


@pytest.fixture
def chat(alice: Persona) -> Chat:
    return new_chat(alice, assistant=new_assistant(alice, name="Quentin"))


def talk(chat: Chat, count: int, *facts: tuple[int, str]) -> list[ChatMessage]:
    """Small talk of so many exchanges, an hour apart from the first of 2026; the facts stand where
    something else would have been said."""
    told = dict(facts)
    given = [
        {
            "role": "assistant" if n % 2 else "human",
            "content": told.get(n, SMALL_TALK[n % len(SMALL_TALK)]),
            "assistant_id": chat.assistant_id if n % 2 else None,
        }
        for n in range(2 * count)
    ]
    assert chat.assistant_id is not None
    tree = build_tree(chat, given, assistant_ids=[chat.assistant_id])
    rows = ChatMessage.objects.bulk_create(tree.values())
    for number, row in enumerate(rows):
        row.created_at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number)
    ChatMessage.objects.bulk_update(rows, ["created_at"])
    transcript.move_leaf(chat, rows[-1])
    return rows
