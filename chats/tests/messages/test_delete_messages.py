"""Test deleting a message, and deleting a chat with everything in it."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chats.messages import transcript
from chats.models import Chat, ChatMessage, Turn
from chats.services import delete_chat
from chats.tests.rows import converse, fill, new_chat, new_turn, of_chat, of_message, path_of, say
from tests.fixtures.personas import api


def delete(persona, message):
    answer = api(persona).delete(of_message(message))
    assert answer.status_code == 204, answer.json()


def opening_of(chat: Chat) -> list[str]:
    chat.refresh_from_db()
    leaf = chat.active_leaf
    assert leaf is not None
    return [message.content for message in transcript.opening(leaf)]


def test_what_follows_stays(alice, chat):
    _, answered, last = converse(chat, "Hi", "Hello", "Bye")
    delete(alice, answered)
    assert path_of(chat) == [("human", "Hi"), ("human", "Bye")]
    chat.refresh_from_db()
    assert chat.active_leaf == last


def test_all_its_children_are_kept(alice, chat):
    question, one = converse(chat, "Hi", "one")
    say(chat, "two", role="assistant", parent=question)
    delete(alice, question)
    assert set(ChatMessage.objects.values_list("content", "parent")) == {
        ("one", None),
        ("two", None),
    }
    api(alice).put(of_chat(chat, "branch/"), {"leaf_id": str(one.pk)})
    assert path_of(chat) == [("assistant", "one")]


def test_the_leaf_moves_to_the_parent(alice, chat):
    first, last = converse(chat, "Hi", "Hello")
    delete(alice, last)
    chat.refresh_from_db()
    assert chat.active_leaf == first
    delete(alice, first)
    chat.refresh_from_db()
    assert chat.active_leaf is None
    assert path_of(chat) == []


def test_turns_keep_their_place(alice, chat):
    first, last = converse(chat, "Hi", "Hello")
    turn = new_turn(chat, status="completed", tip=last)
    delete(alice, last)
    turn.refresh_from_db()
    assert (turn.question, turn.tip) == (None, first)


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ("one", ["two", "three"]),
        ("two", ["one", "three"]),
        ("three", ["one", "two"]),
        ("Hi", ["one", "two", "three"]),
    ],
)
def test_system_messages_that_open_the_chat_still_do(alice, chat, gone, left):
    rows = {text: say(chat, text, role="system") for text in ("one", "two", "three")}
    rows["Hi"] = say(chat, "Hi")
    say(chat, "Hello", role="assistant")
    delete(alice, rows[gone])
    assert opening_of(chat) == left
    say(chat, "And?")
    assert opening_of(chat) == left


def test_a_first_question_taken_away_brings_no_new_opening_to_old_messages(alice, chat):
    """What stands first now was said later; it stays where it is, and counts as a message."""
    question = say(chat, "Hi")
    say(chat, "Be brief.", role="system")
    say(chat, "And?")
    delete(alice, question)
    assert path_of(chat) == [("system", "Be brief."), ("human", "And?")]


def test_the_only_opening_taken_away_leaves_none(alice, chat):
    system = say(chat, "Be brief.", role="system")
    say(chat, "Hi")
    delete(alice, system)
    assert opening_of(chat) == []


# -- A whole chat ----------------------------------------------------------------------------------


def test_a_chat_goes_with_everything(alice, chat):
    kept = say(new_chat(alice))
    converse(chat, "Hi", "Hello")
    new_turn(chat, status="completed")
    assert api(alice).delete(of_chat(chat)).status_code == 204
    assert list(ChatMessage.objects.all()) == [kept]
    assert not Turn.objects.exists()
    assert api(alice).get(of_chat(chat)).status_code == 404


@pytest.mark.parametrize("status", ["queued", "running"])
def test_a_live_turn_goes_too(alice, chat, status):
    say(chat)
    new_turn(chat, status=status)
    assert api(alice).delete(of_chat(chat)).status_code == 204
    assert not Turn.objects.exists()


def test_a_thousand_messages_cost_no_more_queries_than_ten(alice, assistant):
    def queries(length: int) -> int:
        chat = new_chat(alice, assistant=assistant)
        rows = fill(chat, length)
        chat.refresh_from_db()
        turn = new_turn(chat, status="completed")
        ChatMessage.objects.filter(pk=rows[0].pk).update(turn=turn, opening=rows[0])
        with CaptureQueriesContext(connection) as asked:
            delete_chat(chat)
        return len(asked)

    assert queries(1_000) == queries(10)
    assert not ChatMessage.objects.exists()
