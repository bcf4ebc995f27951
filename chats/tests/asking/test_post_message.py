import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chats.models import ChatMessage, Turn
from chats.tests.rows import (
    ABSENT,
    converse,
    error_of,
    fields_of,
    messages,
    new_assistant,
    new_chat,
    new_file,
    new_turn,
    path_of,
    say,
)
from tests.fixtures.personas import api

MESSAGE_FIELDS = {
    "id",
    "chat_id",
    "parent_id",
    "sibling_ids",
    "role",
    "content",
    "reasoning",
    "assistant_id",
    "assistant",
    "file_id",
    "file",
    "tool_call",
    "hidden",
    "citations",
    "model",
    "feedback",
    "turn_id",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "created_at",
    "updated_at",
}
STARTS = ["human", "hide_human"]
WAITS = ["human_later", "system", "hide_system"]


def test_a_question_is_stored_and_its_turn_queued_and_rung_for_after_commit(
    alice, assistant, chat, enqueued_turns, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=False) as callbacks:
        answer = api(alice).post(messages(chat), {"content": "Hi there"})
    assert answer.status_code == 201
    said, turn = answer.json()["message"], answer.json()["turn"]
    assert set(said) == MESSAGE_FIELDS
    assert (said["role"], said["content"], said["hidden"]) == ("human", "Hi there", False)
    assert (turn["status"], turn["chat_id"]) == ("queued", str(chat.pk))
    assert said["turn_id"] == turn["id"]
    row = Turn.objects.get()
    assert (row.question, row.tip, row.assistant) == (
        ChatMessage.objects.get(),
        ChatMessage.objects.get(),
        assistant,
    )
    assert (row.user, row.api_key) == (alice.user, None)
    assert enqueued_turns == [], "enqueued before the commit"
    for callback in callbacks:
        callback()
    assert enqueued_turns == [row.pk]


def test_who_would_rather_not_wait_is_told_where_to_look(alice, chat):
    prefer = {"Prefer": "respond-async, wait=10"}
    answer = api(alice).post(messages(chat), {"content": "Hi"}, headers=prefer)
    assert answer.status_code == 202
    assert answer["Preference-Applied"] == "respond-async"
    assert answer["Location"] == f"/api/v1/turns/{answer.json()['turn']['id']}/"
    assert api(alice).get(answer["Location"]).json()["status"] == "queued"
    later = api(alice).post(
        messages(chat), {"content": "Hi", "role": "human_later"}, headers=prefer
    )
    assert later.status_code == 201, "there is nothing to wait for"
    assert "Preference-Applied" not in later


@pytest.mark.parametrize("role", STARTS)
def test_questions_start_a_turn(alice, chat, role):
    answer = api(alice).post(messages(chat), {"role": role, "content": "Hi"})
    assert answer.status_code == 201
    assert answer.json()["turn"]["status"] == "queued"
    assert answer.json()["message"]["assistant_id"] is None


@pytest.mark.parametrize("role", [*WAITS, "assistant"])
def test_other_roles_start_none(alice, chat, role):
    answer = api(alice).post(messages(chat), {"role": role, "content": "Hi"})
    assert answer.status_code == 201
    assert answer.json()["turn"] is None
    assert not Turn.objects.exists()
    assert path_of(chat) == [(role, "Hi")]


def test_a_file_needs_its_id_and_no_words(alice, chat):
    file = new_file(alice, name="cat.png", mime_type="image/png")
    answer = api(alice).post(messages(chat), {"role": "file", "file_id": str(file.pk)})
    assert answer.status_code == 201
    assert answer.json()["turn"] is None
    shown = answer.json()["message"]["file"]
    assert (shown["id"], shown["name"], shown["mime_type"]) == (
        str(file.pk),
        "cat.png",
        "image/png",
    )
    assert "path" not in shown
    assert fields_of(api(alice).post(messages(chat), {"role": "file"})) == ["file_id"]


@pytest.mark.parametrize("role", ["tool_call", "tool", "knowledge"])
def test_roles_of_amber_itself_may_not_be_posted(alice, chat, role):
    answer = api(alice).post(messages(chat), {"role": role, "content": "Hi"})
    assert error_of(answer) == (400, "role_not_allowed")
    assert fields_of(answer) == ["role"]


@pytest.mark.parametrize("role", ["user", "HUMAN", "", None, 7, ["human"]])
def test_unknown_roles_name_the_field(alice, chat, role):
    assert fields_of(api(alice).post(messages(chat), {"role": role, "content": "Hi"})) == ["role"]


@pytest.mark.parametrize("role", [*STARTS, *WAITS, "assistant"])
@pytest.mark.parametrize("content", ["", " \n\t\u3000", None, "a\0b", "x" * 200_001, ["a"]])
def test_content_is_needed_and_bounded(alice, chat, role, content):
    body = {"role": role, "content": content}
    assert fields_of(api(alice).post(messages(chat), body)) == ["content"]
    assert fields_of(api(alice).post(messages(chat), {"role": role})) == ["content"]
    assert not ChatMessage.objects.exists()


def test_content_is_kept_as_it_is(alice, chat):
    content = "  first\r\n\n\n\tsecond \u2028 健康 👩\u200d🔬  "
    answer = api(alice).post(messages(chat), {"content": content})
    assert answer.json()["message"]["content"] == content
    assert ChatMessage.objects.get().content == content
    assert (
        api(alice)
        .post(messages(new_chat(alice, assistant=chat.assistant)), {"content": "x" * 200_000})
        .status_code
        == 201
    )


@pytest.mark.parametrize("body", [b"{", b"[]", b'"hi"', b'{"content": NaN}', b"\xff\xfe{}"])
def test_malformed_json_is_400(alice, chat, body):
    answer = api(alice).post(messages(chat), body, content_type="application/json")
    assert error_of(answer) == (400, "malformed_json")


def test_another_media_type_is_415(alice, chat):
    answer = api(alice).post(messages(chat), b"content=Hi", content_type="text/plain")
    assert error_of(answer) == (415, "unsupported_media_type")


def test_ids_that_are_absent_or_not_yours_are_404(alice, bob, mallory, chat):
    elsewhere = say(new_chat(alice))
    foreign = say(new_chat(mallory))
    for name, ids in {
        "assistant_id": [ABSENT, new_assistant(bob).pk, new_assistant(mallory).pk],
        "file_id": [ABSENT, new_file(bob).pk, new_file(mallory).pk],
        "parent_id": [ABSENT, elsewhere.pk, foreign.pk],
    }.items():
        for pk in ids:
            role = "file" if name == "file_id" else "human"
            body = {"role": role, "content": "Hi", name: str(pk)}
            assert error_of(api(alice).post(messages(chat), body)) == (404, "not_found"), name
    assert not chat.messages.exists()
    assert not Turn.objects.exists()


@pytest.mark.parametrize("name", ["assistant_id", "file_id", "parent_id"])
def test_ids_that_are_none_name_the_field(alice, chat, name):
    assert fields_of(api(alice).post(messages(chat), {"content": "Hi", name: "x"})) == [name]


def test_without_any_assistant_it_is_400_and_nothing_is_stored(alice):
    bare = new_chat(alice)
    answer = api(alice).post(messages(bare), {"content": "Hi"})
    assert error_of(answer) == (400, "no_assistant")
    assert fields_of(answer) == ["assistant_id"]
    assert not ChatMessage.objects.exists()
    assert api(alice).post(messages(bare), {"role": "system", "content": "x"}).status_code == 201


def test_an_assistant_that_is_no_longer_shared_counts_as_none(alice, bob):
    client_tools = new_assistant(bob, shared=True)
    chat = new_chat(alice, assistant=client_tools)
    client_tools.shared = False
    client_tools.save()
    assert error_of(api(alice).post(messages(chat), {"content": "Hi"})) == (400, "no_assistant")


def test_the_message_names_another_assistant(alice, chat):
    other = new_assistant(alice, name="Other")
    answer = api(alice).post(messages(chat), {"content": "Hi", "assistant_id": str(other.pk)})
    assert Turn.objects.get().assistant == other
    assert answer.json()["message"]["assistant"] == {"id": str(other.pk), "name": "Other"}


def test_an_inserted_answer_says_who_gave_it(alice, chat):
    other = new_assistant(alice, name="Other")
    body = {"role": "assistant", "content": "Noon.", "assistant_id": str(other.pk)}
    said = api(alice).post(messages(chat), body).json()["message"]
    assert said["assistant"]["name"] == "Other"


@pytest.mark.parametrize("status", ["queued", "running", "waiting"])
@pytest.mark.parametrize("role", [*STARTS, "assistant"])
def test_a_live_turn_is_409_and_named(alice, chat, role, status):
    say(chat)
    turn = new_turn(chat, status=status)
    answer = api(alice).post(messages(chat), {"role": role, "content": "And?"})
    assert error_of(answer) == (409, "turn_in_progress")
    assert answer.json()["error"]["turn_id"] == str(turn.pk)
    assert answer.json()["error"]["retryable"] is True
    assert path_of(chat) == [("human", "Hi")]


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "cancelled"])
def test_an_ended_turn_is_in_nobodys_way(alice, chat, status):
    say(chat)
    new_turn(chat, status=status)
    assert api(alice).post(messages(chat), {"content": "And?"}).status_code == 201


@pytest.mark.parametrize("role", WAITS)
def test_other_roles_are_taken_during_a_turn_and_lie_on_its_way(alice, chat, role):
    say(chat)
    turn = new_turn(chat, status="running")
    answer = api(alice).post(messages(chat), {"role": role, "content": "By the way"})
    assert answer.status_code == 201
    turn.refresh_from_db()
    assert str(turn.tip_id) == answer.json()["message"]["id"]
    assert path_of(chat) == [("human", "Hi"), (role, "By the way")]


def test_a_message_elsewhere_does_not_move_the_turn(alice, chat):
    first, answered = converse(chat, "Hi", "Hello")
    tip = say(chat, "Which time?")
    turn = new_turn(chat, status="running")
    body = {"role": "human_later", "content": "Aside", "parent_id": str(first.pk)}
    aside = api(alice).post(messages(chat), body).json()["message"]
    turn.refresh_from_db()
    chat.refresh_from_db()
    assert turn.tip == tip
    assert str(chat.active_leaf_id) == aside["id"]
    assert aside["parent_id"] == str(first.pk)
    assert set(aside["sibling_ids"]) == {str(answered.pk), aside["id"]}


def test_goes_under_the_parent_it_names(alice, chat):
    first, answered, _ = converse(chat, "Hi", "Hello", "Bye")
    answer = api(alice).post(messages(chat), {"content": "Wait", "parent_id": str(answered.pk)})
    assert answer.status_code == 201
    assert path_of(chat) == [("human", "Hi"), ("assistant", "Hello"), ("human", "Wait")]
    assert ChatMessage.objects.get(content="Wait").position == first.position + 2


def test_two_questions_follow_each_other(alice, chat):
    api(alice).post(messages(chat), {"role": "system", "content": "Be brief."})
    api(alice).post(messages(chat), {"role": "human_later", "content": "One"})
    api(alice).post(messages(chat), {"content": "Two"})
    assert path_of(chat) == [("system", "Be brief."), ("human_later", "One"), ("human", "Two")]


def test_the_first_question_names_the_chat(alice, chat):
    api(alice).post(messages(chat), {"content": "\n What is\u202e rain? \n\nI wonder."})
    chat.refresh_from_db()
    assert chat.name == "What is rain?"


@pytest.mark.parametrize("role", ["hide_human", "system"])
def test_hidden_questions_and_instructions_name_nothing(alice, chat, role):
    api(alice).post(messages(chat), {"role": role, "content": "secret"})
    chat.refresh_from_db()
    assert chat.name == ""


@pytest.mark.parametrize(
    ("role", "hidden"),
    [("human", False), ("hide_human", True), ("system", False), ("hide_system", True)],
)
def test_hidden_follows_the_role_and_not_the_body(alice, chat, role, hidden):
    body = {"role": role, "content": "Hi", "hidden": not hidden}
    said = api(alice).post(messages(chat), body).json()["message"]
    assert said["hidden"] is hidden


def test_server_chosen_fields_are_not_taken_from_the_body(alice, chat, mallory):
    body = {
        "content": "Hi",
        "id": ABSENT,
        "chat_id": str(new_chat(mallory).pk),
        "turn_id": ABSENT,
        "total_tokens": 7,
        "citations": [1],
        "tool_call": {"id": "x"},
        "organization_id": str(mallory.organization.pk),
    }
    api(alice).post(messages(chat), body)
    row = ChatMessage.objects.get()
    assert str(row.pk) != ABSENT
    assert (row.chat, row.organization) == (chat, alice.organization)
    assert (row.total_tokens, row.citations, row.tool_call) == (0, [], None)


def test_nobody_else_posts(alice, bob, carol, mallory, chat):
    for other in (bob, carol, mallory):
        answer = api(other).post(messages(chat), {"content": "Hi"})
        assert error_of(answer) == (404, "not_found")
    assert api().post(messages(chat), {"content": "Hi"}).status_code == 401
    assert not chat.messages.exists()


def test_a_key_acts_for_its_user_and_is_noted(alice, chat):
    key, secret = alice.new_key()
    assert api(key=secret).post(messages(chat), {"content": "Hi"}).status_code == 201
    turn = Turn.objects.get()
    assert (turn.user, turn.api_key) == (alice.user, key)
    _, reader = alice.new_key(scopes=["read"])
    assert api(key=reader).post(messages(chat), {"content": "Hi"}).status_code == 403


def test_costs_as_much_in_a_long_chat(alice, chat):
    client = api(alice)

    def queries() -> int:
        Turn.objects.all().delete()
        with CaptureQueriesContext(connection) as asked:
            assert client.post(messages(chat), {"content": "Hi"}).status_code == 201
        return len(asked)

    queries()
    short = queries()
    converse(chat, *["text"] * 60)
    assert queries() == short
