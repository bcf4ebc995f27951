"""Test edit, regenerate and switch: how branches are made and shown."""

import pytest

from chats.models import ChatMessage, Turn
from chats.tests.rows import (
    ABSENT,
    converse,
    error_of,
    fields_of,
    new_assistant,
    new_chat,
    new_file,
    new_turn,
    of_chat,
    of_message,
    path_of,
    say,
)
from tests.fixtures.personas import api


def regenerate(persona, message, body=None):
    return api(persona).post(of_message(message, "regenerate/"), body or {})


def switch(persona, chat, leaf):
    return api(persona).put(of_chat(chat, "branch/"), {"leaf_id": str(leaf)})


# -- Edit ------------------------------------------------------------------------------------------


def test_an_edited_question_is_asked_again_beside_the_old_one(
    alice, chat, enqueued_turns, django_capture_on_commit_callbacks
):
    question, answered = converse(chat, "Hi", "Hello")
    with django_capture_on_commit_callbacks(execute=True):
        answer = api(alice).patch(of_message(question), {"content": "Good day"})
    assert answer.status_code == 201
    edited = answer.json()["message"]
    assert edited["id"] != str(question.pk)
    assert (edited["parent_id"], edited["content"]) == (None, "Good day")
    assert edited["sibling_ids"] == [str(question.pk), edited["id"]]
    assert enqueued_turns == [Turn.objects.get().pk]
    assert path_of(chat) == [("human", "Good day")]
    question.refresh_from_db()
    assert question.content == "Hi"
    assert ChatMessage.objects.filter(pk=answered.pk).exists()


def test_an_edit_in_the_middle_keeps_what_came_before(alice, chat):
    converse(chat, "Hi", "Hello")
    later = say(chat, "And?")
    say(chat, "Well", role="assistant")
    api(alice).patch(of_message(later), {"content": "So?"})
    assert path_of(chat) == [("human", "Hi"), ("assistant", "Hello"), ("human", "So?")]


@pytest.mark.parametrize("role", ["assistant", "system", "hide_system", "human_later", "file"])
def test_other_edits_make_a_sibling_and_no_turn(alice, chat, role):
    say(chat)
    file = new_file(alice) if role == "file" else None
    author = new_assistant(alice, name="Iris")
    message = say(chat, "old", role=role, file=file, assistant=author)
    answer = api(alice).patch(of_message(message), {"content": "new"})
    assert answer.status_code == 201
    edited = answer.json()["message"]
    assert answer.json()["turn"] is None
    assert edited["sibling_ids"] == [str(message.pk), edited["id"]]
    assert (edited["role"], edited["hidden"]) == (role, role == "hide_system")
    assert edited["assistant"]["name"] == "Iris"
    assert edited["file_id"] == (str(file.pk) if file else None)
    assert path_of(chat) == [("human", "Hi"), (role, "new")]
    assert not Turn.objects.exists()


@pytest.mark.parametrize("role", ["tool_call", "tool", "knowledge"])
def test_what_amber_wrote_is_not_edited(alice, chat, role):
    call = {"id": "c", "name": "n", "arguments": "{}"}
    message = say(chat, "old", role=role, tool_call=call)
    answer = api(alice).patch(of_message(message), {"content": "new"})
    assert error_of(answer) == (400, "role_not_allowed")


def test_an_edit_asks_whom_the_question_asked(alice, chat):
    other = new_assistant(alice, name="Other")
    question = say(chat, assistant=other)
    api(alice).patch(of_message(question), {"content": "Ho"})
    assert Turn.objects.get().assistant == other


def test_an_edit_needs_an_assistant(alice):
    question = say(new_chat(alice))
    answer = api(alice).patch(of_message(question), {"content": "Ho"})
    assert error_of(answer) == (400, "no_assistant")
    assert ChatMessage.objects.count() == 1


@pytest.mark.parametrize(
    "body", [{}, {"content": " \n"}, {"content": ""}, {"content": None}, {"content": "x" * 200_001}]
)
def test_an_edit_needs_content(alice, chat, body):
    question = say(chat)
    assert fields_of(api(alice).patch(of_message(question), body)) == ["content"]
    assert ChatMessage.objects.count() == 1


def test_a_files_text_may_be_edited_away(alice, chat):
    """The role's own rule applies: a file needs no text."""
    message = say(chat, "Look", role="file", file=new_file(alice))
    assert api(alice).patch(of_message(message), {"content": ""}).status_code == 201


# -- Regenerate ------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["human", "assistant"])
def test_the_question_is_asked_again(
    alice, chat, assistant, which, enqueued_turns, django_capture_on_commit_callbacks
):
    question, answered = converse(chat, "Hi", "Hello")
    say(chat, "And?")
    message = question if which == "human" else answered
    with django_capture_on_commit_callbacks(execute=True):
        answer = regenerate(alice, message)
    assert answer.status_code == 201
    assert answer.json()["message"]["id"] == str(question.pk)
    turn = Turn.objects.get()
    assert (turn.question, turn.tip, turn.assistant) == (question, question, assistant)
    assert enqueued_turns == [turn.pk]
    assert path_of(chat) == [("human", "Hi")]
    assert ChatMessage.objects.count() == 3, "the old answer stays, on its branch"


def test_another_assistant_may_answer(alice, bob, mallory, chat):
    other = new_assistant(alice)
    _, answered = converse(chat, "Hi", "Hello")
    assert regenerate(alice, answered, {"assistant_id": str(other.pk)}).status_code == 201
    assert Turn.objects.get().assistant == other
    Turn.objects.update(status="completed")
    for pk in (ABSENT, new_assistant(bob).pk, new_assistant(mallory).pk):
        assert regenerate(alice, answered, {"assistant_id": str(pk)}).status_code == 404
    assert fields_of(regenerate(alice, answered, {"assistant_id": "x"})) == ["assistant_id"]


def test_who_answered_first_answers_again(alice, chat):
    other = new_assistant(alice)
    question = say(chat)
    question.turn = new_turn(chat, assistant=other, status="failed")
    question.save()
    regenerate(alice, question)
    assert Turn.objects.get(status="queued").assistant == other


def test_an_answer_amid_tool_calls_leads_to_its_question(alice, chat):
    question = say(chat)
    call = {"id": "c", "name": "n", "arguments": "{}"}
    say(chat, role="tool_call", tool_call=call)
    say(chat, role="tool", tool_call=call)
    answered = say(chat, "Noon.", role="assistant")
    assert regenerate(alice, answered).json()["message"]["id"] == str(question.pk)


def test_without_a_question_there_is_nothing_to_ask(alice, chat):
    greeting = say(chat, "Hello", role="assistant")
    assert error_of(regenerate(alice, greeting)) == (400, "no_human_message")
    assert not Turn.objects.exists()


def test_a_failed_turn_is_asked_again(alice, chat):
    question = say(chat)
    new_turn(chat, status="failed")
    assert regenerate(alice, question).status_code == 201
    assert Turn.objects.filter(question=question).count() == 2


# -- Switch ----------------------------------------------------------------------------------------


def test_shows_another_branch(alice, chat):
    question, one = converse(chat, "Hi", "one")
    say(chat, "two", role="assistant", parent=question)
    answer = switch(alice, chat, one.pk)
    assert answer.status_code == 200
    assert answer.json()["active_leaf_id"] == str(one.pk)
    assert path_of(chat) == [("human", "Hi"), ("assistant", "one")]


def test_switching_leaves_a_live_turn_where_it_is(alice, chat):
    question, one = converse(chat, "Hi", "one")
    chat.active_leaf = question
    chat.save()
    turn = new_turn(chat, status="running")
    assert switch(alice, chat, one.pk).status_code == 200
    turn.refresh_from_db()
    assert turn.tip == question


def test_a_leaf_of_another_chat_is_404(alice, bob, mallory, chat):
    say(chat)
    for pk in (ABSENT, say(new_chat(alice)).pk, say(new_chat(bob)).pk, say(new_chat(mallory)).pk):
        assert switch(alice, chat, pk).status_code == 404
    assert fields_of(switch(alice, chat, "x")) == ["leaf_id"]
    assert fields_of(api(alice).put(of_chat(chat, "branch/"), {})) == ["leaf_id"]


# -- All of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["queued", "running", "waiting"])
def test_a_live_turn_is_409(alice, chat, status):
    question, answered = converse(chat, "Hi", "Hello")
    turn = new_turn(chat, status=status)
    for answer in (
        api(alice).patch(of_message(question), {"content": "Ho"}),
        regenerate(alice, answered),
        api(alice).delete(of_message(answered)),
    ):
        assert error_of(answer) == (409, "turn_in_progress")
        assert answer.json()["error"]["turn_id"] == str(turn.pk)
    assert ChatMessage.objects.count() == 2


def test_nobody_else_may(alice, bob, carol, mallory, chat):
    question, answered = converse(chat, "Hi", "Hello")
    for other, status in ((bob, 404), (carol, 404), (mallory, 404), (None, 401)):
        client = api(other)
        assert client.patch(of_message(question), {"content": "x"}).status_code == status
        assert regenerate(other, answered).status_code == status
        assert switch(other, chat, question.pk).status_code == status
        assert client.delete(of_message(question)).status_code == status
    assert path_of(chat) == [("human", "Hi"), ("assistant", "Hello")]


def test_a_sibling_is_shown_by_the_newest_branch_through_it(alice, chat):
    question, first = converse(chat, "Hi", "Hello")
    older = say(chat, "And?", parent=first)
    newer = say(chat, "So?", parent=first)
    last = say(chat, "Well", role="assistant", parent=newer)
    other = say(chat, "Other", role="assistant", parent=question)
    ways = {first: last, newer: last, older: older, other: other, question: other}
    for message, leaf in ways.items():
        shown = api(alice).put(of_chat(chat, "branch/"), {"message_id": str(message.pk)})
        assert shown.json()["active_leaf_id"] == str(leaf.pk)


def test_a_branch_is_named_in_one_way(alice, chat, bob):
    (question,) = converse(chat, "Hi")
    both = {"leaf_id": str(question.pk), "message_id": str(question.pk)}
    assert fields_of(api(alice).put(of_chat(chat, "branch/"), both)) == ["leaf_id"]
    foreign = say(new_chat(bob), "Hi")
    answer = api(alice).put(of_chat(chat, "branch/"), {"message_id": str(foreign.pk)})
    assert answer.status_code == 404
