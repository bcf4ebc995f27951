"""Test keys bound to one assistant: they see it and the chats they began with it, nothing else."""

import pytest

from chats.models import Chat, Turn
from chats.tests.rows import (
    ALL,
    error_of,
    messages,
    new_assistant,
    new_chat,
    new_turn,
    of_chat,
    of_message,
    of_turn,
    say,
)
from tests.fixtures.personas import api


@pytest.fixture
def key(alice, assistant):
    return alice.new_key(assistant_id=assistant.pk)


@pytest.fixture
def client(key):
    return api(key=key[1])


@pytest.fixture
def mine(alice, assistant, key):
    return new_chat(alice, assistant=assistant, owner="api", api_key=key[0])


@pytest.fixture(params=["of another assistant", "of another key", "of the user"])
def other(request, alice, assistant, key):
    """Return a chat of the same user that the key must not see."""
    fields = {
        "of another assistant": {"assistant": new_assistant(alice), "api_key": key[0]},
        "of another key": {"assistant": assistant, "api_key": alice.new_key()[0]},
        "of the user": {"assistant": assistant},
    }[request.param]
    chat = new_chat(alice, owner="api" if "api_key" in fields else "user", **fields)
    say(chat, "rain")
    return chat


def test_its_chats_are_with_its_assistant(alice, assistant, client):
    for body in ({}, {"assistant_id": str(assistant.pk)}):
        made = client.post(ALL, body)
        assert made.json()["assistant_id"] == str(assistant.pk)
    foreign = new_assistant(alice)
    assert error_of(client.post(ALL, {"assistant_id": str(foreign.pk)})) == (404, "not_found")
    assert Chat.objects.count() == 2


def test_a_chat_without_assistant_cannot_be_made_by_it(assistant, client):
    """The key could not see what it made."""
    made = client.post(ALL, {"assistant_id": None})
    assert made.json()["assistant_id"] == str(assistant.pk)
    taken_in = client.post(f"{ALL}import/", {"messages": []})
    assert taken_in.json()["assistant_id"] == str(assistant.pk)
    for answer in (made, taken_in):
        assert client.get(f"{ALL}{answer.json()['id']}/").status_code == 200


def test_a_chat_cannot_be_taken_out_of_its_sight(assistant, client, mine):
    answer = client.patch(of_chat(mine), {"assistant_id": None})
    assert answer.json()["assistant_id"] == str(assistant.pk)
    mine.refresh_from_db()
    assert mine.assistant == assistant


def test_sees_its_own_chats_with_its_assistant_only(client, mine, other):
    listed = [
        row
        for owner in ("api", "user")
        for row in client.get(f"{ALL}?owner={owner}").json()["results"]
    ]
    assert [row["id"] for row in listed] == [str(mine.pk)]
    message, turn = other.messages.get(), new_turn(other, assistant=other.assistant)
    for answer in (
        client.get(of_chat(other)),
        client.patch(of_chat(other), {"name": "x"}),
        client.delete(of_chat(other)),
        client.get(messages(other)),
        client.post(messages(other), {"content": "Hi"}),
        client.put(of_chat(other, "branch/"), {"leaf_id": str(message.pk)}),
        client.get(of_chat(other, "export/")),
        client.get(of_message(message)),
        client.patch(of_message(message), {"content": "x"}),
        client.delete(of_message(message)),
        client.post(of_message(message, "regenerate/"), {}),
        client.get(of_turn(turn)),
        client.get(of_turn(turn, "events/")),
        client.post(of_turn(turn, "cancel/")),
    ):
        assert error_of(answer) == (404, "not_found")
    assert client.get(f"{ALL}search/?q=rain").json()["results"] == []


def test_asks_its_assistant_and_no_other(alice, assistant, client, mine):
    foreign = new_assistant(alice)
    refused = client.post(messages(mine), {"content": "Hi", "assistant_id": str(foreign.pk)})
    assert refused.status_code == 404
    tried = client.post(f"/api/v1/assistants/{foreign.pk}/try/", {"content": "Hi"})
    assert error_of(tried) == (404, "not_found")
    assert client.post(messages(mine), {"content": "Hi"}).status_code == 201
    turn = Turn.objects.get()
    assert turn.assistant == assistant
    assert client.get(of_turn(turn)).status_code == 200


def test_a_question_to_another_assistant_is_asked_again_of_its_own(alice, assistant, client, mine):
    question = say(mine, assistant=new_assistant(alice))
    assert client.post(of_message(question, "regenerate/"), {}).status_code == 201
    assert Turn.objects.get().assistant == assistant
