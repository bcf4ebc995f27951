"""Models that want back what they sent: their tool loops in stored chats, over real HTTP.

The fake provider refuses a conversation that lacks the very signature or thought (`tests.fakes.habits`).
"""

import json
from typing import Any

import pytest

from chats.context.manifest import rebuild_messages, request_hash
from chats.models import Chat, ChatMessage, Turn
from chats.running.reply_rows import logger as reply_logger
from chats.services import update_chat
from chats.tests.event_streams import stream_of
from chats.tests.rows import messages, new_assistant, of_chat, of_turn
from chats.tests.runs import (
    ask,
    ask_in,
    assert_stored_is_what_was_streamed,
    die_the_second_time,
    marker,
    run,
)
from engine.events import TurnStatus
from engine.provider import openai_model
from tests.fixtures.personas import api

pytestmark = pytest.mark.django_db(transaction=True)

BOTH = ["fake-gemini", "fake-deepseek"]
NEVER_STREAMED = ["fake-json-gemini", "fake-json-deepseek"]
SIX = "[[fake tokens=6]]"
LOOP = marker("calculate", {"expression": "9+6"})
TWO_ROUNDS = f"{LOOP[:-2]} rounds=2]]"
TWO_CALLS = f"{LOOP[:-2]} times=2]]"
SECRETS = ("signed:", "I thought of", "provider_fields", "reasoning_content", "extra_content")


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch):
    """A model that was asked twice would hide what got lost."""
    monkeypatch.setattr(openai_model, "_mends", {})


def completes(turn: Turn) -> bool:
    assert run(turn) == TurnStatus.COMPLETED, turn.error
    return not openai_model._mends


def fields_of(role: str) -> list[Any]:
    rows = ChatMessage.objects.filter(role=role).order_by("created_at")
    return list(rows.values_list("provider_fields", flat=True))


# -- A loop, and later turns -----------------------------------------------------------------------


@pytest.mark.parametrize("question", [LOOP, TWO_ROUNDS, TWO_CALLS])
@pytest.mark.parametrize("name", BOTH + NEVER_STREAMED)
def test_a_whole_loop_works_and_so_do_later_turns(alice, new_model, name, question):
    new_model(name)
    turn = ask(alice, name, question)
    assert completes(turn)
    for later in (SIX, question, "And? " + SIX):
        assert completes(ask_in(turn.chat, alice, later))
    assert_stored_is_what_was_streamed(turn)


def test_a_request_made_again_from_its_manifest_has_the_fields(alice, new_model, fake_provider):
    new_model("fake-gemini")
    first = ask(alice, "fake-gemini", LOOP)
    run(first)
    later = ask_in(first.chat, alice, f"a9a9 {SIX}")
    run(later)
    again = rebuild_messages(later)
    assert again is not None
    assert request_hash(again) == later.manifest["request_hash"]
    [sent] = fake_provider.requests("a9a9")
    assert again == sent["messages"]
    assert "signed:" in json.dumps(again)


def test_thoughts_of_turns_without_calls_are_not_kept(alice, new_model):
    new_model("fake-deepseek")
    turn = ask(alice, "fake-deepseek", SIX)
    assert completes(turn)
    assert fields_of("assistant") == [None]
    assert completes(ask_in(turn.chat, alice, LOOP))


# -- A worker that dies, a person who decides ------------------------------------------------------


@pytest.mark.parametrize("method", ["store_result", "store_reply"])
@pytest.mark.parametrize("name", BOTH)
def test_a_turn_goes_on_where_a_worker_died(alice, new_model, monkeypatch, name, method):
    """Behind the second round's calls, or behind a result: the stored rows are all that is left."""
    new_model(name)
    turn = ask(alice, name, TWO_ROUNDS)
    die_the_second_time(turn, monkeypatch, method)
    assert completes(turn)
    assert turn.step == 3


# -- Another model ---------------------------------------------------------------------------------


def switched(turn: Turn, persona: Any, model: str) -> Chat:
    assert turn.chat is not None
    update_chat(turn.chat, assistant=new_assistant(persona, model=model))
    return Chat.objects.get(pk=turn.chat.pk)


@pytest.mark.parametrize("name", BOTH)
def test_another_model_is_sent_nothing_of_it(alice, new_model, name):
    new_model(name)
    new_model("fake-strict")
    turn = ask(alice, name, LOOP)
    assert completes(turn)
    chat = switched(turn, alice, "fake-strict")
    assert completes(ask_in(chat, alice, LOOP))
    chat = switched(turn, alice, name)
    back = ask_in(chat, alice, SIX)
    assert run(back) == TurnStatus.COMPLETED
    openai_model._mends.clear()  # fake-deepseek had to learn that thoughts are wanted
    chat = switched(turn, alice, "fake-strict")
    assert completes(ask_in(chat, alice, SIX))


def test_a_model_that_wants_thoughts_takes_over_from_one_that_has_none(alice, new_model):
    """It learns with one more request that they are wanted; then it is told that there were none."""
    new_model("fake-gemini")
    new_model("fake-deepseek")
    turn = ask(alice, "fake-gemini", LOOP)
    assert completes(turn)
    chat = switched(turn, alice, "fake-deepseek")
    for question in (LOOP, SIX):
        taken_over = ask_in(chat, alice, question)
        assert run(taken_over) == TurnStatus.COMPLETED, taken_over.error


# -- Who sees it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_viewers_see_nothing_of_it(alice, new_model, name):
    """What was thought is shown by itself (`test_show_reasoning`), unless the assistant hides it."""
    new_model(name)
    turn = ask(alice, name, LOOP, hide_reasoning=True)
    run(turn)
    assert any(fields_of("tool_call"))
    told = [
        json.dumps(stream_of(turn)),
        *(
            api(alice).get(address).content.decode()
            for address in (messages(turn.chat), of_turn(turn), of_turn(turn, "manifest/"))
        ),
    ]
    assert [word for word in SECRETS for text in told if word in text] == []


# -- Export and import -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_an_imported_chat_goes_on(alice, new_model, name):
    new_model(name)
    turn = ask(alice, name, TWO_ROUNDS)
    run(turn)
    body = api(alice).get(of_chat(turn.chat, "export/")).json()
    answer = api(alice).post("/api/v1/chats/import/", body)
    assert answer.status_code == 201, answer.json()
    chat = Chat.objects.get(pk=answer.json()["id"])
    update_chat(chat, assistant=new_assistant(alice, model=name))
    assert completes(ask_in(chat, alice, SIX))
    again = api(alice).get(of_chat(chat, "export/")).json()["messages"]
    kept = [m.get("provider_fields") for m in body["messages"]]
    assert [m.get("provider_fields") for m in again][: len(kept)] == kept
    assert any(kept)


def test_an_import_takes_no_more_than_is_known(alice):
    call = {"id": "c", "name": "f", "arguments": "{}"}
    fields = {"sender": "s", "call": {"extra_content": {"g": 1}, "role": "x"}, "more": 1}
    rows = [
        {"role": "human", "content": "?"},
        {"role": "tool_call", "content": "", "tool_call": call, "provider_fields": fields},
        {"role": "assistant", "content": "!", "provider_fields": {"message": "none"}},
    ]
    answer = api(alice).post("/api/v1/chats/import/", {"messages": rows})
    assert answer.status_code == 201, answer.json()
    assert fields_of("tool_call") == [{"sender": "s", "call": {"extra_content": {"g": 1}}}]
    assert fields_of("assistant") == [None]


# -- Limits ----------------------------------------------------------------------------------------


def test_what_is_too_long_is_not_kept_and_said_so(alice, new_model, monkeypatch):
    warned: list[str] = []
    monkeypatch.setattr("engine.provider_fields.MAX_FIELDS_BYTES", 10)
    monkeypatch.setattr(reply_logger, "warning", lambda event, **_: warned.append(event))
    new_model("fake-gemini")
    turn = ask(alice, "fake-gemini", LOOP)
    assert run(turn) == TurnStatus.COMPLETED  # the turn itself has not forgotten it
    assert fields_of("tool_call") == [None]
    assert warned == ["provider_fields_too_long"]
