"""A question and its files are one request; with files it needs no words."""

from uuid import uuid4

import pytest

from chats.models import Chat, ChatMessage, Turn
from chats.tests.rows import (
    ABSENT,
    ALL,
    error_of,
    fields_of,
    messages,
    new_file,
    of_chat,
    of_message,
    path_of,
    say,
)
from providers.models import Budget
from tests.fixtures.personas import api


@pytest.fixture
def spent(alice, new_model):
    """Nobody may use a token any more."""
    new_model("any", default=True)
    return Budget.objects.create(
        organization=alice.organization, scope="organization", period="day", unit="tokens", limit=0
    )


def test_files_stand_before_their_question_in_their_order(alice, chat):
    files = [new_file(alice, name=name) for name in ("b.txt", "a.txt")]
    ids = [str(file.pk) for file in files]
    answer = api(alice).post(messages(chat), {"content": "Compare", "file_ids": ids})
    assert answer.status_code == 201, answer.content
    assert path_of(chat) == [("file", ""), ("file", ""), ("human", "Compare")]
    posted = ChatMessage.objects.filter(role="file").order_by("position")
    assert [message.file for message in posted] == files
    assert Turn.objects.get().question == ChatMessage.objects.get(role="human")


@pytest.mark.parametrize("content", ["", " \n"])
def test_with_files_it_needs_no_words_and_the_chat_is_named_after_the_first(alice, chat, content):
    file = new_file(alice, name="sun.png", mime_type="image/png")
    body = {"content": content, "file_ids": [str(file.pk)]}
    answer = api(alice).post(messages(chat), body)
    assert answer.status_code == 201, answer.content
    assert answer.json()["turn"]["status"] == "queued"
    chat.refresh_from_db()
    assert chat.name == "sun.png"
    assert chat.active_leaf.role == "human"


def test_without_words_it_can_be_edited_and_asked_again(alice, chat):
    body = {"content": "", "file_ids": [str(new_file(alice).pk)]}
    said = api(alice).post(messages(chat), body).json()["message"]
    question = ChatMessage.objects.get(pk=said["id"])
    Turn.objects.update(status="completed")
    assert api(alice).post(of_message(question, "regenerate/"), {}).status_code == 201
    Turn.objects.update(status="completed")
    worded = api(alice).patch(of_message(question), {"content": "What is this?"})
    assert worded.status_code == 201
    Turn.objects.update(status="completed")
    again = api(alice).patch(f"/api/v1/messages/{worded.json()['message']['id']}/", {"content": ""})
    assert again.status_code == 201, again.content


def test_only_a_question_has_files(alice, chat):
    ids = [str(new_file(alice).pk)]
    for role in ("system", "assistant", "human_later", "file"):
        body = {"role": role, "content": "Hi", "file_ids": ids, "file_id": ids[0]}
        assert fields_of(api(alice).post(messages(chat), body)) == ["file_ids"]
    assert fields_of(api(alice).post(messages(chat), {"file_ids": []})) == ["content"]
    assert fields_of(api(alice).post(messages(chat), {"file_ids": ["x"]})) == ["file_ids.0"]
    many = [str(uuid4()) for _ in range(101)]
    assert fields_of(api(alice).post(messages(chat), {"file_ids": many})) == ["file_ids"]
    assert not ChatMessage.objects.exists()


def test_another_s_file_is_missing_and_nothing_is_stored(alice, mallory, chat):
    for other in (str(new_file(mallory).pk), ABSENT):
        body = {"content": "Hi", "file_ids": [str(new_file(alice).pk), other]}
        assert error_of(api(alice).post(messages(chat), body)) == (404, "not_found")
    assert not ChatMessage.objects.exists()


def test_a_refused_question_leaves_none_of_its_files(alice, chat, spent):
    body = {"content": "Hi", "file_ids": [str(new_file(alice).pk)]}
    assert error_of(api(alice).post(messages(chat), body)) == (429, "budget_exceeded")
    assert not ChatMessage.objects.exists()


def test_a_chat_begins_with_its_first_question(alice, assistant, enqueued_turns):
    question = {"content": "Why amber?", "file_ids": [str(new_file(alice).pk)]}
    body = {"assistant_id": str(assistant.pk), "question": question}
    client = api(alice)
    made, again = (client.post(ALL, body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert made.status_code == again.status_code == 201, made.content
    assert made.json() == again.json()
    chat = Chat.objects.get()
    turn = Turn.objects.get()
    assert made.json()["live_turn_id"] == str(turn.pk)
    assert made.json()["name"] == chat.name == "Why amber?"
    assert path_of(chat) == [("file", ""), ("human", "Why amber?")]
    assert made.json()["active_leaf_id"] == str(turn.question_id)


def test_a_first_question_that_is_refused_leaves_no_chat(alice, assistant, spent):
    body = {"assistant_id": str(assistant.pk), "question": {"content": "Hi"}}
    assert error_of(api(alice).post(ALL, body)) == (429, "budget_exceeded")
    assert error_of(api(alice).post(ALL, {"question": {"content": "Hi"}})) == (400, "no_assistant")
    assert fields_of(api(alice).post(ALL, {"question": {"content": ""}})) == ["question.content"]
    assert not Chat.objects.exists()


def test_only_a_new_chat_takes_a_question(alice, chat):
    api(alice).patch(of_chat(chat), {"question": {"content": "Hi"}})
    assert not ChatMessage.objects.exists()


def test_words_alone_are_needed_where_a_tool_made_the_file(alice, chat):
    say(chat, "Draw")
    say(chat, "", role="file", file=new_file(alice), tool_call={"id": "c", "name": "draw"})
    question = say(chat, "And now?")
    assert fields_of(api(alice).patch(of_message(question), {"content": ""})) == ["content"]
