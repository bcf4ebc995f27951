"""Test `me/export/`: all that is a person's, nothing else, in one document that can be read
again."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
from django.db import connections

from accounts.group_services import grant_right
from amber.lib.json_text import stream
from amber.lib.json_text.stream import json_pieces
from assistants.models import Assistant, AssistantTool, ScenePrompt
from chats.messages.wire import ChatWire, chat_wire
from chats.models import Chat
from chats.tests.event_streams import read_parts
from chats.tests.rows import converse, fill, new_assistant, new_chat, new_file, say
from libraries.models import Document, Library
from memory.facts.facts import Fact, remember
from memory.owner import Owner
from operations.privacy import person_export
from operations.privacy.person_export import person_document
from providers.models import OFFLINE_URL, EmbeddingModel, Provider, UsageRecord
from tests.fixtures.personas import OPERATOR, Persona, api, new_group
from tools.models import Tool

ADDRESS = "/api/v1/me/export/"

pytestmark = pytest.mark.django_db(transaction=True)


def exported(persona: Persona) -> dict[str, Any]:
    answer = api(persona).get(ADDRESS)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert answer["Content-Disposition"] == 'attachment; filename="amber-export.json"'
    assert answer["Cache-Control"] == "no-store"
    document: dict[str, Any] = orjson.loads(read_parts(answer))
    return document


def furnish(persona: Persona, name: str) -> None:
    """Make one of everything that belongs to a person; all texts contain `name`."""
    mine = {"organization": persona.organization, "user": persona.user}
    model = EmbeddingModel.objects.get_or_create(
        alias="offline",
        defaults={
            "provider": Provider.objects.get_or_create(name="Offline", base_url=OFFLINE_URL)[0]
        },
    )[0]
    library = Library.objects.create(**mine, name=f"Library of {name}", embedding_model=model)
    Document.objects.create(**mine, library=library, name=f"Document of {name}", text="long")
    tool = Tool.objects.create(
        **mine, name=f"Tool of {name}", discovery_url="https://t.example/", api_key_sealed="SEALED"
    )
    assistant = new_assistant(persona, name=f"Assistant of {name}", library=library)
    AssistantTool.objects.create(organization=persona.organization, assistant=assistant, tool=tool)
    ScenePrompt.objects.create(
        organization=persona.organization, assistant=assistant, label=f"Scene of {name}"
    )
    chat = new_chat(persona, assistant=assistant, name=f"Chat of {name}")
    question, _ = converse(chat, f"I am {name}", f"Hello {name}")
    say(chat, f"Or hello {name}", role="assistant", parent=question)
    say(chat, "", role="file", file=new_file(persona, name=f"File of {name}.txt", text="SECRET"))
    remember(Owner.of(persona.principal), Fact(f"The user is {name}", evidence=[question.pk]))
    persona.new_key(name=f"Key of {name}")
    UsageRecord.objects.create(**mine, model="m", prompt_tokens=7, completion_tokens=3)


def test_everything_of_the_person_is_in_it(alice):
    furnish(alice, "alice")
    document = exported(alice)
    assert document["profile"]["email"] == "alice@example.com"
    assert {each["organization"]["name"] for each in document["memberships"]} >= {"Acme"}
    (chat,) = document["chats"]
    assert chat["chat"]["name"] == "Chat of alice"
    assert [message["role"] for message in chat["messages"]] == [
        *("human", "assistant", "assistant", "file"),
    ]
    assert document["memories"][0]["content"] == "The user is alice"
    (file,) = document["files"]
    assert file["content_url"] == f"http://testserver/api/v1/files/{file['id']}/content/"
    (assistant,) = document["assistants"]
    assert assistant["tools"][0]["tool"]["name"] == "Tool of alice"
    assert assistant["scene_prompts"][0]["label"] == "Scene of alice"
    assert document["libraries"][0]["documents"][0]["name"] == "Document of alice"
    assert document["tools"][0]["has_api_key"] is True
    assert document["api_keys"][0]["name"] == "Key of alice"
    (usage,) = document["usage"]
    assert (usage["calls"], usage["prompt_tokens"], usage["completion_tokens"]) == (1, 7, 3)
    acts = [event["action"] for event in document["audit_events"]]
    assert acts == ["key.made", "person.exported"]


def test_groups_and_what_was_shared_with_them_are_in_it(alice, bob):
    """By name: the people in them are not the person's to take along."""
    furnish(bob, "bob")
    group = new_group("Support", bob, alice)
    for model in (Assistant, Library, Tool):
        grant_right(model._default_manager.get(), group=group, right="edit", by=OPERATOR)
    document = exported(bob)
    (acme,) = [each for each in document["memberships"] if each["groups"]]
    assert acme["organization"]["name"] == "Acme"
    (there,) = acme["groups"]
    assert (there["id"], there["name"]) == (str(group.pk), "Support")
    for kind in ("assistants", "libraries", "tools"):
        (row,) = document[kind]
        given = {"group_id": str(group.pk), "group_name": "Support", "right": "edit"}
        assert (row["access"], row["grants"]) == ("own", [given])
    assert "alice" not in str(document)
    assert not any(exported(alice)[kind] for kind in ("assistants", "libraries", "tools"))


def test_nothing_of_others_and_no_secret_is_in_it(alice, bob, carol, mallory):
    for persona, name in ((alice, "alice"), (bob, "bob"), (mallory, "mallory")):
        furnish(persona, name)
    Tool.objects.update(shared=True)
    Library.objects.update(shared=True)
    text = str(exported(alice))
    assert "bob" not in text
    assert "mallory" not in text
    assert "SEALED" not in text
    assert "SECRET" not in text
    assert "sha256" not in text
    assert "alice" not in str(exported(carol))


def test_each_chat_of_it_can_be_imported(alice):
    furnish(alice, "alice")
    (given,) = exported(alice)["chats"]
    answer = api(alice).post("/api/v1/chats/import/", given)
    assert answer.status_code == 201, answer.content
    again = exported(alice)["chats"][1]
    for before, after in zip(given["messages"], again["messages"], strict=True):
        for name in ("role", "content", "tool_call", "hidden", "created_at"):
            assert before[name] == after[name]
    old, new = ([each["id"] for each in chat["messages"]].index for chat in (given, again))
    assert [m["parent_id"] and old(m["parent_id"]) for m in given["messages"]] == [
        m["parent_id"] and new(m["parent_id"]) for m in again["messages"]
    ]


def test_keys_and_strangers_get_nothing(alice):
    _, secret = alice.new_key()
    assert api(key=secret).get(ADDRESS).status_code == 403
    assert api().get(ADDRESS).status_code == 401


def test_a_long_chat_is_read_in_batches_and_lost_nowhere(alice, monkeypatch):
    monkeypatch.setattr(person_export, "MESSAGES_AT_ONCE", 7)
    chat = new_chat(alice)
    rows = fill(chat, 100)
    for number in range(20):
        say(chat, f"branch {number}", parent=rows[49])
    (given,) = exported(alice)["chats"]
    assert len({message["id"] for message in given["messages"]}) == 120
    seen: set[str] = set()
    for message in given["messages"]:
        assert message["parent_id"] is None or message["parent_id"] in seen
        seen.add(message["id"])


def test_it_is_never_in_memory_as_a_whole(alice, monkeypatch):
    """Parts arrive before later chats have been read."""
    monkeypatch.setattr(stream, "PIECE_BYTES", 1_000)
    for _ in range(5):
        fill(new_chat(alice), 40)
    read: list[Any] = []

    def wire(chat: Chat) -> ChatWire:
        read.append(chat)
        return chat_wire(chat)

    monkeypatch.setattr("operations.privacy.person_export.chat_wire", wire)
    seen_at_piece = []
    document = person_document(alice.principal, alice.user, address="")
    for piece in json_pieces(document):
        assert len(piece) < 3_000
        seen_at_piece.append(len(read))
    assert seen_at_piece[-1] == 5
    assert len({count for count in seen_at_piece if count}) == 5
    assert all(before <= after for before, after in pairwise(seen_at_piece))


def test_no_connection_is_held_between_pieces(alice, monkeypatch):
    monkeypatch.setattr(stream, "PIECE_BYTES", 1_000)
    fill(new_chat(alice), 40)
    closed: list[int] = []
    close_all = connections.close_all

    def close() -> None:
        closed.append(1)
        close_all()

    monkeypatch.setattr("amber.lib.json_text.stream.connections.close_all", close)
    answer = api(alice).get(ADDRESS)
    read_parts(answer, 3)
    assert len(closed) >= 3


def test_an_empty_account_is_a_document_too(bob):
    document = exported(bob)
    assert document["chats"] == document["memories"] == document["files"] == []
    assert document["usage"] == []
    assert not Chat.objects.exists()
