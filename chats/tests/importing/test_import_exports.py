"""Test that exports of other systems become chats: trees, times, models, files, thoughts."""

import json

import pytest

from chats.context.tail import as_engine_message
from chats.importing import known_chats, services
from chats.messages import transcript
from chats.models import Chat, ChatMessage
from chats.tests.importing import exports
from chats.tests.importing.exports import row, send_files, send_json
from chats.tests.rows import error_of, fields_of, messages, new_assistant
from chats.tests.runs import ask_in, run
from libraries.models import File
from tests.fixtures.personas import api

YEAR_2023 = "2023-11-14T22:13:20Z"


def report_of(answer):
    assert answer.status_code == 201, answer.json()
    return answer.json()


def only(answer):
    """The only chat of the answer: its entry, and its row."""
    report = report_of(answer)
    (entry,) = report["chats"]
    assert report["refused"] == []
    return entry, Chat.objects.get(pk=entry["chat"]["id"])


def shown(chat):
    """(role, content, model) of the branch that is shown."""
    chat.refresh_from_db()
    rows = transcript.path(chat.pk, chat.active_leaf_id)
    return [(m.role, m.content, m.model) for m in rows]


def lost(entry):
    return {(each["kind"], each["count"]) for each in entry["not_taken"]}


def thoughts_of(chat, content):
    return row(chat=chat, content=content).reasoning


# -- ChatGPT ---------------------------------------------------------------------------------------


def test_a_conversation_of_chatgpt_comes_whole(alice):
    answer = send_files(alice, {"export.zip": exports.chatgpt_zip()})
    entry, other = report_of(answer)["chats"]
    chat = Chat.objects.get(pk=entry["chat"]["id"])
    assert (entry["format"], entry["is_new"], chat.name) == ("chatgpt", True, "Rain")
    assert entry["chat"]["created_at"] == YEAR_2023
    assert shown(chat) == [
        ("hide_system", "I keep bees.\n\nBe brief.", ""),
        ("file", "", ""),
        ("human", "What is this?", ""),
        ("assistant", "A bee.", "o3"),
        ("human", "6 * 7?", ""),
        ("tool_call", "", ""),
        ("tool", "42", ""),
        ("assistant", "42.", ""),
    ]
    assert entry["messages"] == 10
    edited = row(chat=chat, content="Will it rain?")
    answered = row(chat=chat, parent=edited)
    assert (answered.content, answered.model) == ("No.", "gpt-4o")
    assert edited.parent == row(chat=chat, role="file").parent
    assert edited.created_at.isoformat() == "2023-11-14T22:13:20.500000+00:00"
    call = row(chat=chat, role="tool_call").tool_call
    assert call["name"] == "python"
    assert json.loads(call["arguments"]) == {"input": "print(6 * 7)"}
    assert row(chat=chat, role="tool").tool_call["id"] == call["id"]
    assert lost(entry) == {("citation", 1)}
    assert other["chat"]["name"] == "Hi"


def test_its_image_is_a_file_of_the_importers(alice, mallory):
    report_of(send_files(alice, {"export.zip": exports.chatgpt_zip()}))
    file = row(role="file").file
    assert (file.name, file.mime_type, file.user) == ("bee.png", "image/png", alice.user)
    address = f"/api/v1/files/{file.pk}/"
    assert api(alice).get(address).status_code == 200
    assert api(mallory).get(address).status_code == 404


def test_thoughts_stay_apart_and_are_sent_to_no_model(alice):
    _, chat = only(send_json(alice, [exports.chatgpt_conversation()]))
    assert thoughts_of(chat, "A bee.") == "Look\nA bee."
    assert not ChatMessage.objects.filter(chat=chat, content__contains="Look").exists()
    answer = row(chat=chat, content="A bee.")
    listed = api(alice).get(messages(chat)).json()["results"]
    assert "Look\nA bee." in [m["reasoning"] for m in listed]
    assert answer.provider_fields is None
    for sender in ("", "0123456789abcdef"):
        assert as_engine_message(answer, vision=True, sender=sender).provider_fields == {}


def test_without_its_zip_the_image_is_told_to_be_missing(alice):
    entry, chat = only(send_json(alice, [exports.chatgpt_conversation()]))
    assert ("attachment", 1) in lost(entry)
    assert not ChatMessage.objects.filter(chat=chat, role="file").exists()
    question = row(chat=chat, content="What is this?")
    assert question.parent.role == "hide_system"


def test_files_may_be_sent_one_by_one(alice):
    given = {
        "conversations.json": json.dumps([exports.chatgpt_conversation()]).encode(),
        "file_00ab-sanitized.png": exports.PNG,
    }
    entry, _ = only(send_files(alice, given))
    assert lost(entry) == {("citation", 1)}


def test_a_tool_that_speaks_twice_has_a_call_for_each(alice):
    """A provider refuses a result without a call."""
    node = exports.chatgpt_node
    shown_pages = {"content_type": "tether_browsing_display", "result": "page"}
    quote = {"content_type": "tether_quote", "title": "T", "url": "https://x", "text": "words"}
    code = {"content_type": "code", "text": "search('rain')"}
    conversation = exports.chatgpt(
        node("q", None, "user", "Rain?"),
        node("c", "q", "assistant", code, recipient="web.run"),
        node("r", "c", "tool", shown_pages, name="web.run"),
        node("s", "r", "tool", quote, name="web.run"),
    )
    _, chat = only(send_json(alice, conversation))
    rows = ChatMessage.objects.filter(chat=chat).order_by("position")
    assert [(m.role, m.content) for m in rows] == [
        ("human", "Rain?"),
        ("tool_call", ""),
        ("tool", "page"),
        ("tool_call", ""),
        ("tool", "T\nhttps://x\nwords"),
    ]
    calls = [m.tool_call for m in rows if m.role == "tool_call"]
    results = [m.tool_call for m in rows if m.role == "tool"]
    assert [call["id"] for call in calls] == [result["id"] for result in results]
    assert {call["name"] for call in calls} == {"web_run"}


# -- Open WebUI ------------------------------------------------------------------------------------


def test_a_chat_of_open_webui_comes_whole(alice):
    entry, chat = only(send_json(alice, [exports.open_webui_chat()]))
    assert (entry["format"], chat.name, chat.prompt) == ("open_webui", "Rain", "Be brief.")
    assert entry["chat"]["created_at"] == YEAR_2023
    assert shown(chat) == [
        ("file", "", ""),
        ("file", "", ""),
        ("human", "Will it rain?", ""),
        ("tool_call", "", "qwen3"),
        ("tool", "dry", "qwen3"),
        ("assistant", "No.", "qwen3"),
    ]
    other = row(chat=chat, content="Yes.")
    assert other.model == "llama3:8b"
    result = other.parent
    assert (result.role, result.content, result.parent.tool_call["id"]) == ("tool", "wet", "call_1")
    assert json.loads(result.parent.tool_call["arguments"]) == {"city": "Paris"}
    assert result.parent.parent.content == "Will it rain?"
    assert {file.name for file in File.objects.all()} == {"image.png", "a.pdf.txt"}
    # the image that is not there, the document whose text alone is, and two sources
    assert lost(entry) == {("attachment", 1), ("citation", 2)}
    texts = File.objects.get(name="a.pdf.txt").text
    assert texts == "Read me."


def test_its_thoughts_are_found_where_it_keeps_them(alice):
    _, chat = only(send_json(alice, [exports.open_webui_chat()]))
    thoughtful = ChatMessage.objects.filter(chat=chat).exclude(reasoning="").order_by("model")
    assert [(m.role, m.reasoning) for m in thoughtful] == [
        ("tool_call", "Think of\nclouds."),
        ("tool_call", "Look out."),
    ]


# -- LibreChat -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_conversation_of_librechat_comes_whole(alice, is_nested):
    given = exports.librechat_conversation()
    if is_nested:
        given["messagesTree"] = exports.nested(given.pop("messages"))
    entry, chat = only(send_json(alice, given))
    assert (entry["format"], chat.name, chat.prompt) == ("librechat", "Rain", "Be brief.")
    assert shown(chat) == [
        ("human", "Will it rain?", ""),
        ("tool_call", "", "gpt-4"),
        ("tool", "wet", "gpt-4"),
        ("assistant", "Yes.", "gpt-4"),
    ]
    other = row(chat=chat, content="No.")
    assert (other.parent.content, other.model) == ("Will it rain?", "gpt-3.5-turbo")
    assert other.created_at.isoformat() == "2024-04-09T14:32:05.230000+00:00"
    assert lost(entry) == {("attachment", 1), ("error", 1)}
    call = row(chat=chat, role="tool_call")
    assert call.reasoning == "Clouds."


# -- OpenAI ----------------------------------------------------------------------------------------


def test_messages_of_openai_come_whole(alice):
    entry, chat = only(send_json(alice, exports.openai_messages()))
    assert entry["format"] == "openai_messages"
    assert shown(chat) == [
        ("system", "Be brief.", ""),
        ("file", "", ""),
        ("human", "Will it rain?", ""),
        ("tool_call", "", ""),
        ("tool", "wet", ""),
        ("assistant", "Yes.", ""),
    ]
    assert lost(entry) == set()


def test_several_conversations_of_openai_come_in_one_list_or_line_by_line(alice):
    first = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    second = {"messages": [{"role": "user", "content": "Bye"}], "title": "End", "model": "gpt-5"}
    listed = report_of(send_json(alice, [first, second]))
    assert [(each["chat"]["name"], each["messages"]) for each in listed["chats"]] == [
        ("", 2),
        ("End", 1),
    ]
    lines = "\n".join(map(json.dumps, [{"messages": first}, second])).encode()
    again = report_of(send_json(alice, lines, "?again=true"))
    assert len(again["chats"]) == 2
    assert Chat.objects.count() == 4


# -- Coming twice ----------------------------------------------------------------------------------

SAMPLES = {
    "chatgpt": lambda: [exports.chatgpt_conversation()],
    "open_webui": lambda: [exports.open_webui_chat()],
    "librechat": exports.librechat_conversation,
    "openai_messages": exports.openai_messages,
    "amber": lambda: {"messages": [{"role": "human", "content": "Hi"}]},
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_twice_makes_no_double(alice, bob, name):
    first, chat = only(send_json(alice, SAMPLES[name]()))
    files = File.objects.count()
    second, same = only(send_json(alice, SAMPLES[name]()))
    assert (first["format"], same) == (name, chat)
    assert (first["is_new"], second["is_new"]) == (True, False)
    assert second["messages"] == first["messages"]
    assert File.objects.count() == files
    theirs, other = only(send_json(bob, SAMPLES[name]()))
    assert (theirs["is_new"], other.user) == (True, bob.user)
    assert Chat.objects.count() == 2


def test_a_conversation_that_went_on_is_another(alice):
    conversation = exports.chatgpt_conversation()
    only(send_json(alice, conversation))
    conversation["mapping"]["q4"] = exports.chatgpt_node("q4", "a3", "user", "Thanks")
    assert only(send_json(alice, conversation))[0]["is_new"]


def test_what_was_deleted_comes_back(alice):
    _, chat = only(send_json(alice, exports.openai_messages()))
    assert api(alice).delete(f"/api/v1/chats/{chat.pk}/").status_code == 204
    assert only(send_json(alice, exports.openai_messages()))[0]["is_new"]


def test_what_has_expired_comes_back(alice):
    _, chat = only(send_json(alice, exports.openai_messages()))
    Chat.objects.filter(pk=chat.pk).update(expired_at=YEAR_2023)
    assert only(send_json(alice, exports.openai_messages()))[0]["is_new"]


def test_two_imports_at_once_make_one_chat(alice, monkeypatch):
    """The other one was faster: its chat is found once the database refuses a second."""
    _, chat = only(send_json(alice, exports.openai_messages()))
    calls = []
    known = known_chats.find_known

    def blind_once(*args):
        calls.append(args)
        return None if len(calls) == 1 else known(*args)

    monkeypatch.setattr(services, "find_known", blind_once)
    entry, same = only(send_json(alice, exports.openai_messages()))
    assert (entry["is_new"], same, len(calls)) == (False, chat, 2)
    assert File.objects.count() == 1


# -- Going on --------------------------------------------------------------------------------------


def test_says_what_to_do_without_an_assistant(alice):
    entry, chat = only(send_json(alice, exports.openai_messages()))
    assert entry["chat"]["can_be_asked"] is False
    assert f"PATCH chats/{chat.pk}/" in entry["notice"]
    refused = api(alice).post(messages(chat), {"content": "And now?"})
    assert error_of(refused) == (400, "no_assistant")
    given = {"assistant_id": str(new_assistant(alice).pk)}
    patched = api(alice).patch(f"/api/v1/chats/{chat.pk}/", given)
    assert patched.json()["can_be_asked"] is True
    assert api(alice).post(messages(chat), {"content": "And now?"}).status_code == 201


@pytest.mark.parametrize("way", ["query", "form"])
def test_gives_every_chat_the_assistant_that_is_named(alice, bob, way):
    own = new_assistant(alice)
    body = json.dumps([exports.open_webui_chat()]).encode()

    def send(assistant):
        if way == "query":
            return send_json(alice, body, f"?assistant_id={assistant.pk}")
        return send_files(alice, {"a.json": body}, assistant_id=str(assistant.pk))

    entry, chat = only(send(own))
    assert (chat.assistant, entry["notice"]) == (own, None)
    assert error_of(send(new_assistant(bob))) == (404, "not_found")


def test_a_second_import_brings_the_assistant_that_was_missing(alice):
    _, chat = only(send_json(alice, exports.openai_messages()))
    own = new_assistant(alice)
    entry, same = only(send_json(alice, exports.openai_messages(), f"?assistant_id={own.pk}"))
    assert (same, same.assistant, entry["notice"]) == (chat, own, None)


@pytest.mark.django_db(transaction=True)
def test_every_format_is_answered_by_a_model(alice, new_model):
    """No history that a provider refuses: the provider of the tests checks what is sent."""
    new_model("fake-echo", default=True)
    own = new_assistant(alice)
    for sample in SAMPLES.values():
        entry, chat = only(send_json(alice, sample(), f"?assistant_id={own.pk}"))
        turn = ask_in(chat, alice)
        assert run(turn) == "completed", (entry["format"], turn.error)


# -- Options ---------------------------------------------------------------------------------------


def test_wrong_options_are_named(alice):
    given = exports.openai_messages()
    assert fields_of(send_json(alice, given, "?assistant_id=x")) == ["assistant_id"]
    assert fields_of(send_json(alice, given, "?again=perhaps")) == ["again"]
    assert fields_of(api(alice).post(exports.IMPORT, {}, format="multipart")) == ["file"]


def test_a_repeated_request_is_answered_as_the_first(alice):
    given = exports.openai_messages()
    body = json.dumps(given).encode()
    client = api(alice)

    def send(content):
        return client.generic(
            "POST",
            exports.IMPORT,
            content,
            content_type="application/json",
            headers={"Idempotency-Key": "k"},
        )

    first = send(body)
    assert first.status_code == 201, first.json()
    assert send(body).json() == first.json()
    assert error_of(send(json.dumps([given]).encode())) == (409, "idempotency_mismatch")
