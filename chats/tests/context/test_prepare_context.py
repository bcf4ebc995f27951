"""Test what is sent to the model: prompts, the chat's tail, files; and the manifest of it."""

from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.test.utils import CaptureQueriesContext

from amber.lib.errors import AmberError, Invalid
from chats.context import gathering
from chats.context.manifest import rebuild_messages, request_hash
from chats.models import Chat, Turn
from chats.tests.rows import converse, fill, new_assistant, new_chat, new_file, new_turn, say
from chats.tests.runs import ask_in, prepared_for, run

PIXEL = b"\x89PNG not really a picture"


@pytest.fixture(autouse=True)
def only_our_tools(monkeypatch):
    monkeypatch.setattr("tools.calling.registry._tools", {})


@pytest.fixture(autouse=True)
def models(new_model):
    new_model("text-model", default=True)


@pytest.fixture
def chat(alice):
    return new_chat(alice, assistant=new_assistant(alice, name="Iris", prompt="You are Iris."))


def prepare(chat: Chat, **fields: Any) -> gathering.PreparedRequest:
    """Prepare the request for a question at the end of the chat."""
    chat.refresh_from_db()
    return prepared_for(new_turn(chat, **({"assistant": chat.assistant} | fields)))


def asked(prepared: gathering.PreparedRequest) -> list[tuple[str, str]]:
    """Return (role, text) without the times."""
    return [(m["role"], _plain(m["content"])) for m in prepared.request.messages]


def _plain(content: Any) -> str:
    if isinstance(content, list):
        content = " ".join(part.get("text", "[image]") for part in content)
    lines = str(content).split("\n")
    return "\n".join(line for line in lines if not line.startswith("[Sent at "))


def test_the_prompt_and_the_conversation(chat):
    converse(chat, "Hi", "Hello", "Which time?")
    prepared = prepare(chat)
    assert asked(prepared) == [
        ("system", "You are Iris."),
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("user", "Which time?"),
    ]
    assert len(prepared.manifest()["messages"]) == 3


def test_only_the_branch_of_the_turn(chat):
    question, _ = converse(chat, "Hi", "one")
    say(chat, "two", role="assistant", parent=question)
    say(chat, "And?")
    assert ("assistant", "one") not in asked(prepare(chat))


def test_who_answers_is_not_read_again_but_others_who_answered_are(chat, alice):
    other = new_assistant(alice, name="Otto", description="a parrot")
    say(chat, "Hi")
    say(chat, "Hello", role="assistant", assistant=chat.assistant)
    say(chat, "And who are you?")
    with CaptureQueriesContext(connection) as queries:
        assert ("assistant", "Hello") in asked(prepare(chat, status="completed"))
    assert not any('"assistants_assistant"."id" IN' in query["sql"] for query in queries)
    say(chat, "Polly", role="assistant", assistant=other)
    say(chat, "Sure?")
    told = asked(prepare(chat))
    assert any("name is 'Otto' and the description is 'a parrot'" in text for _, text in told)


def test_what_may_be_searched_and_where_the_tail_begins_take_one_query(chat):
    converse(chat, "Hi", "Hello", "Which time?")
    with CaptureQueriesContext(connection) as queries:
        prepare(chat)
    reads = [query["sql"] for query in queries if "chats_messageblock" in query["sql"]]
    assert len(reads) == 1
    assert "memory_memory" in reads[0]


# -- Prompts ---------------------------------------------------------------------------------------


def test_the_chats_prompt_replaces_the_assistants(chat):
    say(chat)
    chat.prompt = "You are a pirate."
    chat.save()
    assert asked(prepare(chat))[0] == ("system", "You are a pirate.")


@pytest.mark.parametrize("prompt", [None, "", " \n"])
def test_an_empty_prompt_of_the_chat_replaces_nothing(chat, prompt):
    say(chat)
    chat.prompt = prompt
    chat.save()
    assert asked(prepare(chat))[0] == ("system", "You are Iris.")


def test_the_organizations_prompt_comes_first_unless_disabled(chat, alice):
    say(chat)
    alice.organization.default_prompt = "We are Acme."
    alice.organization.save()
    assert asked(prepare(chat, status="completed"))[0] == (
        "system",
        "We are Acme.\nYou are Iris.",
    )
    chat.assistant.disable_default_prompt = True
    chat.assistant.save()
    assert asked(prepare(chat))[0] == ("system", "You are Iris.")


def test_instructions_that_open_the_chat_are_part_of_the_prompt(chat):
    say(chat, "Be brief.", role="system")
    say(chat, "Be kind.", role="hide_system")
    say(chat, "Hi")
    say(chat, "Now in French.", role="system")
    say(chat, "Ça va?")
    messages = asked(prepare(chat))
    assert messages[0] == ("system", "You are Iris.\nBe brief.\nBe kind.")
    assert ("system", "Now in French.") in messages[1:]


# -- The tail --------------------------------------------------------------------------------------


@pytest.fixture
def short_tail(settings):
    settings.AMBER_CONTEXT_TAIL_TOKENS = 500


def test_instructions_that_open_the_chat_stay_for_ever(chat, short_tail):
    say(chat, "Be brief.", role="system")
    say(chat, "Be kind.", role="hide_system")
    converse(chat, *[f"{number} " + "word " * 40 for number in range(101)])
    prepared = prepare(chat)
    messages = asked(prepared)
    assert messages[0] == ("system", "You are Iris.\nBe brief.\nBe kind.")
    assert prepared.manifest()["history_is_cut"] is True
    assert len(messages) < 30
    assert messages[-1][1].startswith("100 ")


def test_a_cut_tail_begins_with_a_question(chat, short_tail):
    for length in range(60, 64):
        other = new_chat_like(chat)
        converse(other, *[f"{number} " + "word " * 40 for number in range(length)])
        say(other, "And?")
        messages = asked(prepare(other))
        assert messages[1][0] == "user"


def new_chat_like(chat: Chat) -> Chat:
    return Chat.objects.create(
        organization=chat.organization, user=chat.user, assistant=chat.assistant
    )


def test_a_tail_cut_in_a_tool_round_has_no_orphaned_result(chat, short_tail):
    converse(chat, "Hi", "Hello")
    say(chat, "Look it up")
    call = {"id": "c", "name": "n", "arguments": "{}", "reply_id": "r"}
    say(chat, "", role="tool_call", tool_call=call)
    say(chat, "result " * 400, role="tool", tool_call=call)
    say(chat, "Done", role="assistant")
    say(chat, "And?")
    messages = prepare(chat).request.messages
    assert not [m for m in messages if m["role"] == "tool" or m.get("tool_calls")]


def test_the_turns_own_question_is_never_cut_off(chat, short_tail):
    """Its results alone may be larger than the tail."""
    converse(chat, "Hi", "Hello")
    question = say(chat, "Look it up")
    call = {"id": "c", "name": "n", "arguments": "{}", "reply_id": "r"}
    say(chat, "", role="tool_call", tool_call=call)
    tip = say(chat, "result " * 1_000, role="tool", tool_call=call)
    messages = prepare(chat, question=question, tip=tip).request.messages
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "tool"]


def test_a_question_longer_than_the_tail_goes_in_whole(chat, short_tail):
    converse(chat, "Hi", "Hello")
    say(chat, "long " * 2_000)
    messages = asked(prepare(chat))
    assert [role for role, _ in messages] == ["system", "user"]
    assert messages[1][1] == "long " * 2_000


def test_what_the_window_cannot_hold_is_dropped_and_said(chat, new_model):
    new_model("small", context_tokens=700, max_output_tokens=100)
    chat.assistant.model = "small"
    chat.assistant.save()
    converse(chat, *[f"{number} " + "word " * 60 for number in range(40)])
    say(chat, "And?")
    prepared = prepare(chat)
    assert prepared.manifest()["left_out"][0]["count"] > 0
    messages = asked(prepared)
    assert (messages[0], messages[-1]) == (("system", "You are Iris."), ("user", "And?"))


def test_a_question_that_alone_is_too_long_is_an_error(chat, new_model):
    new_model("small", context_tokens=700, max_output_tokens=100)
    chat.assistant.model = "small"
    chat.assistant.save()
    say(chat, "different words every time " * 400)
    with pytest.raises(AmberError) as refusal:
        prepare(chat)
    assert refusal.value.code == "context_too_long"


def test_a_question_that_was_too_long_does_not_end_the_chat(chat, new_model):
    new_model("small", context_tokens=700, max_output_tokens=100)
    chat.assistant.model = "small"
    chat.assistant.save()
    say(chat, "Speak French.", role="system")
    say(chat, "different words every time " * 400)
    say(chat, "And now?", role="human_later")
    say(chat, "Which time?")
    prepared = prepare(chat)
    assert asked(prepared) == [
        ("system", "You are Iris.\nSpeak French."),
        ("user", "And now?\nWhich time?"),
    ]
    manifest = prepared.manifest()
    left_out = manifest["left_out"][0]
    assert (left_out["code"], left_out["count"]) == ("no_room", 1)
    turn = Turn.objects.get(chat=chat)
    turn.manifest = manifest
    again = rebuild_messages(turn)
    assert again is not None
    assert request_hash(again) == manifest["request_hash"]


def test_a_long_chat_costs_no_more_queries_than_a_new_one(chat):
    def queries() -> int:
        with CaptureQueriesContext(connection) as made:
            prepare(chat, status="completed")
        return len(made) - 2  # the chat is read again and the turn is made

    say(chat, "Be brief.", role="system")
    converse(chat, "Hi", "Hello", "And?")
    few = queries()
    assert few <= 10
    fill(chat, 10_000)
    say(chat, "And?")
    assert queries() <= few + 1, "one more reads the opening of a cut path"


def test_nobody_asked(chat):
    say(chat, "Hello", role="assistant")
    with pytest.raises(Invalid) as refusal:
        prepare(chat)
    assert refusal.value.code == "no_human_message"


# -- Who answers -----------------------------------------------------------------------------------


def test_anothers_answer_is_announced(chat, alice):
    other = new_assistant(alice, name="Otto", description="An expert.")
    say(chat)
    say(chat, "I am Otto.", role="assistant", assistant=other)
    say(chat, "And you?")
    roles_and_texts = asked(prepare(chat, status="completed"))
    _, warning = [text for role, text in roles_and_texts if role == "system"]
    assert warning.startswith("[Warning]The previous message has been replied to by another")
    assert "'Otto'" in warning
    assert "'An expert.'" in warning
    messages = asked(prepare(chat, assistant=other))
    assert "system" not in [role for role, _ in messages], "its own is not"


def test_an_answer_of_its_own_is_not_announced(chat):
    say(chat)
    say(chat, "I am Iris.", role="assistant", assistant=chat.assistant)
    say(chat, "And?")
    assert [role for role, _ in asked(prepare(chat))].count("system") == 1


def test_times_are_told_on_the_users_clock(chat, alice):
    alice.user.time_zone = "Asia/Tokyo"
    alice.user.save()
    message = say(chat)
    chat.messages.filter(pk=message.pk).update(created_at="2024-01-01T20:00:00Z")
    content = prepare(chat).request.messages[-1]["content"]
    assert content == "[Sent at 2024-01-02 05:00:00]\nHi"


# -- Which model -----------------------------------------------------------------------------------


def test_a_model_that_was_disabled_runs_as_auto_and_the_manifest_says_so(chat, new_model):
    old = new_model("old")
    chat.assistant.model = "old"
    chat.assistant.save()
    say(chat)
    assert prepare(chat, status="completed").manifest()["model"] == "old"
    old.enabled = False
    old.save()
    manifest = prepare(chat).manifest()
    assert manifest["model"] == "text-model"
    assert "'old'" in manifest["model_fallback"]


def test_the_temperature_is_clamped(chat):
    say(chat)
    for given, sent in ((None, None), (0.0, 0.1), (0.7, 0.7), (2.0, 1.0)):
        chat.assistant.temperature = given
        chat.assistant.save()
        assert prepare(chat, status="completed").request.temperature == sent


@pytest.fixture
def picture(alice):
    name = default_storage.save("test-picture", ContentFile(PIXEL))
    yield new_file(alice, name="cat.png", mime_type="image/png", path=name, text=None)
    default_storage.delete(name)


def test_an_image_asks_for_the_model_that_sees(chat, new_model, picture):
    new_model("eyes", vision=True, default_vision=True)
    say(chat, "", role="file", file=picture)
    say(chat, "What is it?")
    prepared = prepare(chat)
    assert prepared.manifest()["model"] == "eyes"
    parts: Any = prepared.request.messages[-1]["content"]
    images = [part["image_url"] for part in parts if part["type"] == "image_url"]
    assert [image["detail"] for image in images] == ["auto"]
    assert images[0]["url"].startswith("data:image/png;base64,")


def test_a_picture_without_a_word_is_all_that_the_model_is_asked(chat, new_model, picture):
    new_model("eyes", vision=True, default_vision=True)
    say(chat, "", role="file", file=picture)
    say(chat, "")
    last: Any = prepare(chat).request.messages[-1]
    assert last["role"] == "user"
    assert [part["type"] for part in last["content"]] == ["image_url"]


def test_an_image_in_words_for_a_model_that_does_not_see(chat, picture):
    say(chat, "", role="file", file=picture)
    say(chat, "What is it?")
    assert "\n[image: cat.png]\n</data-" in asked(prepare(chat))[-1][1]


def test_a_named_model_stays_whatever_is_shown_to_it(chat, new_model, picture):
    new_model("eyes", vision=True, default_vision=True)
    chat.assistant.model = "text-model"
    chat.assistant.save()
    say(chat, "", role="file", file=picture)
    say(chat, "What is it?")
    assert prepare(chat).manifest()["model"] == "text-model"


def test_a_picture_whose_bytes_are_gone_is_told_in_words(chat, new_model, alice):
    new_model("eyes", vision=True, default_vision=True)
    gone = new_file(alice, name="cat.png", mime_type="image/png", path="nowhere", text=None)
    say(chat, "", role="file", file=gone)
    say(chat, "What is it?")
    assert "[image: cat.png]" in asked(prepare(chat))[-1][1]


def test_a_text_file_is_told_with_its_name(chat, alice):
    say(chat, "", role="file", file=new_file(alice, name="notes.md", text="# Rain"))
    say(chat, "Sum it up")
    assert "\n[file: notes.md]\n# Rain\n</data-" in asked(prepare(chat))[-1][1]


@pytest.mark.django_db(transaction=True)
def test_the_bytes_of_a_picture_reach_the_provider(alice, chat, new_model, picture, fake_provider):
    new_model("fake-model", vision=True, default_vision=True)
    say(chat, "", role="file", file=picture)
    assert run(ask_in(chat, alice, "What is in this picture? [[fake tokens=3]]")) == "completed"
    body = fake_provider.requests("What is in this picture?")[-1]
    parts = body["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    assert urls == ["data:image/png;base64,iVBORyBub3QgcmVhbGx5IGEgcGljdHVyZQ=="]
    assert body["model"] == "fake-model"


# -- Without a chat --------------------------------------------------------------------------------


def test_a_turn_without_a_chat_takes_its_input(chat, alice):
    turn = Turn.objects.create(
        organization=alice.organization,
        user=alice.user,
        assistant=chat.assistant,
        input={
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "human", "content": "Hi"},
            ]
        },
    )
    prepared = prepared_for(turn)
    assert asked(prepared) == [("system", "You are Iris.\nBe brief."), ("user", "Hi")]
