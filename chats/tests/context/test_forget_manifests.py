"""Test that a deleted memory is in no manifest of a past turn any more."""

import json
from importlib import import_module
from typing import Any

import pytest
from django.db import connection

from chats.models import Turn
from chats.tests.context.test_seal_chats import embedder
from chats.tests.rows import new_assistant, new_chat, of_turn
from chats.tests.runs import ask_in, run
from memory.facts.facts import Fact, remember
from memory.models import Memory
from memory.owner import Owner
from memory.services import forget_memory
from tests.fixtures.personas import api

__all__ = ["embedder"]

pytestmark = pytest.mark.django_db(transaction=True)

REX = "The user's cat is called Rex"


@pytest.fixture
def turn(alice: Any, new_model: Any, embedder: Any) -> Any:
    """It was told of the memory, and is over."""
    new_model("fake-model", default=True)
    remember(Owner.of(alice.principal), Fact(REX))
    turn = ask_in(
        new_chat(alice, assistant=new_assistant(alice)), alice, "What is my cat's name, Rex or Tom?"
    )
    assert run(turn) == "completed"
    return turn


def shown(alice: Any, turn: Any) -> Any:
    return api(alice).get(of_turn(turn, "manifest/?request=true")).json()


def test_it_is_shown_while_it_is_remembered(alice, turn):
    (memory,) = shown(alice, turn)["memories"]
    assert (memory["id"], memory["content"]) == (str(Memory.objects.get().pk), REX)
    assert REX in json.dumps(shown(alice, turn)["request"])


def test_its_text_is_kept_nowhere_else(turn):
    assert REX not in json.dumps(Turn.objects.values_list("manifest", flat=True).get(pk=turn.pk))


def test_once_forgotten_it_is_named_and_not_told(alice, turn):
    memory = Memory.objects.get()
    forget_memory(memory)
    answer = shown(alice, turn)
    assert [(m["id"], m["content"]) for m in answer["memories"]] == [(str(memory.pk), None)]
    assert answer["request"] is None
    assert REX not in json.dumps(answer)


def test_manifests_from_before_lose_their_texts(turn):
    before: Any = Turn.objects.values_list("manifest", flat=True).get(pk=turn.pk)
    old = [{"content": REX, "tokens": 8}, {"id": "2", "content": REX}]
    Turn.objects.filter(pk=turn.pk).update(manifest={**before, "memories": old})
    with connection.cursor() as cursor:
        cursor.execute(import_module("chats.migrations.0007_manifests_name_memories").FORGET_TEXTS)
    turn.refresh_from_db()
    assert turn.manifest == {**before, "memories": [{"tokens": 8}, {"id": "2"}]}
