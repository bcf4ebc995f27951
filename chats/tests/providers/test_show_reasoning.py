"""What a model thinks before it speaks: streamed, stored beside the answer, counted, and hidden where
the assistant says so. The fake provider thinks in every way of `tests.fakes.habits`.
"""

import asyncio
from typing import Any

import pytest

from amber.lib.database.tenant import across_tenants
from amber.lib.workers.leases import StopReason
from assistants.models import Assistant
from chats.messages.turn_messages import messages_of_turn, shown_entries_of_turn
from chats.models import ChatMessage, Turn
from chats.running.writer import TurnWriter
from chats.services import start_stateless_turn
from chats.streaming.stored_state import state_of
from chats.tests.event_streams import stream_of
from chats.tests.rows import messages, new_assistant, new_chat, of_chat
from chats.tests.runs import (
    ask,
    ask_in,
    assert_stored_is_what_was_streamed,
    marker,
    names_of,
    run,
    running,
    seen_of,
)
from engine.events import TurnStatus
from engine.provider import openai_model
from providers.models import UsageRecord
from tests.fakes.answers import answer_text
from tests.fakes.habits import THINKERS
from tests.fixtures.personas import api

pytestmark = pytest.mark.django_db(transaction=True)

SIX = "[[fake tokens=6]]"
LOOP = marker("calculate", {"expression": "9+6"})


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch):
    monkeypatch.setattr(openai_model, "_mends", {})


def said_by(turn: Turn) -> list[tuple[str, str, str]]:
    return [(m["role"], m["content"], m["reasoning"]) for m in messages_of_turn(turn)]


def thoughts_streamed(turn: Turn) -> str:
    return "".join(e["text"] for e in stream_of(turn) if e["event"] == "reasoning.delta")


def thought_of(turn: Turn) -> str:
    (message,) = messages_of_turn(turn)
    return str(message["reasoning"])


@pytest.mark.parametrize("form", ["fake-", "fake-json-"])
@pytest.mark.parametrize("thinker", THINKERS)
def test_reasoning_is_told_from_the_answer(alice, new_model, thinker, form):
    name = f"{form}{thinker}"
    new_model(name)
    turn = ask(alice, name, SIX)
    assert run(turn) == TurnStatus.COMPLETED, turn.error
    (answer,) = messages_of_turn(turn)
    assert answer["content"].strip() == answer_text(6).strip()
    assert answer["reasoning"].startswith("I thought of ")
    assert thoughts_streamed(turn) == answer["reasoning"]
    assert_stored_is_what_was_streamed(turn)


def test_it_stands_with_the_calls_that_it_led_to(alice, new_model):
    new_model("fake-deepseek")
    turn = ask(alice, "fake-deepseek", LOOP)
    assert run(turn) == TurnStatus.COMPLETED
    first, result, last = said_by(turn)
    assert first[0] == "tool_call"
    assert first[2].startswith("I thought of call_")
    assert result[2] == ""
    assert last[2].startswith("I thought of call_")
    assert names_of(turn) == [
        "turn.started",
        "reasoning.delta",
        "message.stored",
        "tool.started",
        "tool.finished",
        "message.stored",
        "reasoning.delta",
        "text.delta",
        "message.stored",
        "turn.completed",
    ]


def test_it_is_counted(alice, new_model):
    new_model("fake-deepseek")
    turn = ask(alice, "fake-deepseek", SIX)
    run(turn)
    (record,) = UsageRecord.objects.filter(turn_id=turn.pk)
    assert 0 < record.reasoning_tokens < record.completion_tokens
    assert turn.usage["reasoning_tokens"] == record.reasoning_tokens


def test_an_assistant_hides_it(alice, new_model):
    new_model("fake-deepseek")
    turn = ask(alice, "fake-deepseek", LOOP, hide_reasoning=True)
    assert run(turn) == TurnStatus.COMPLETED
    assert "reasoning.delta" not in names_of(turn)
    assert_stored_is_what_was_streamed(turn)
    assert {reasoning for _, _, reasoning in said_by(turn)} == {""}
    client = api(alice)
    for address in (messages(turn.chat), of_chat(turn.chat, "export/")):
        assert "I thought of" not in client.get(address).content.decode()
    again = ask_in(turn.chat, alice, LOOP)  # the model still has its own of it
    assert run(again) == TurnStatus.COMPLETED
    assert not openai_model._mends
    update_assistant = client.patch(
        f"/api/v1/assistants/{turn.assistant_id}/", {"hide_reasoning": False}
    )
    assert update_assistant.status_code == 200
    assert "I thought of" in client.get(messages(turn.chat)).content.decode()


def test_hidden_thoughts_go_with_their_assistant(alice, bob, new_model):
    """Nothing would say any more that nobody may read them."""
    new_model("fake-deepseek")
    assistant = new_assistant(alice, model="fake-deepseek", hide_reasoning=True, shared=True)
    turn = ask_in(new_chat(bob, assistant=assistant), bob, LOOP)
    stateless: Any = start_stateless_turn(
        bob.principal, messages=[{"role": "human", "content": LOOP}], assistant=assistant
    )
    for each in (turn, stateless):
        assert run(each) == TurnStatus.COMPLETED
    assert "I thought of" in str(stateless.output)
    assert api(alice).delete(f"/api/v1/assistants/{assistant.pk}/").status_code == 204
    for address in (messages(turn.chat), of_chat(turn.chat, "export/")):
        told = api(bob).get(address)
        assert told.status_code == 200
        assert "I thought of" not in told.content.decode()
    stateless = Turn.objects.get(pk=stateless.pk)
    assert "I thought of" not in str(shown_entries_of_turn(stateless))
    assert messages_of_turn(stateless)[-1]["content"]


def test_thoughts_stay_hidden_whose_assistant_is_deleted_meanwhile(alice, new_model, monkeypatch):
    new_model("fake-deepseek")
    turn = ask(alice, "fake-deepseek", LOOP, hide_reasoning=True)
    store = TurnWriter.store_reply

    def delete_and_store(self: TurnWriter, reply: Any, seq: int) -> None:
        with across_tenants():
            Assistant.objects.all().delete()
        store(self, reply, seq)

    monkeypatch.setattr(TurnWriter, "store_reply", delete_and_store)
    assert run(turn) == TurnStatus.COMPLETED, turn.error
    exported = api(alice).get(of_chat(turn.chat, "export/")).content.decode()
    assert "tool_call" in exported
    assert "I thought of" not in exported


def test_a_chat_that_is_exported_and_imported_shows_it_still(alice, new_model):
    new_model("fake-think-tags")
    turn = ask(alice, "fake-think-tags", SIX)
    run(turn)
    body = api(alice).get(of_chat(turn.chat, "export/")).json()
    answer = api(alice).post("/api/v1/chats/import/", body)
    assert answer.status_code == 201, answer.json()
    new = ChatMessage.objects.get(chat=answer.json()["id"], role="assistant")
    assert new.reasoning == thought_of(turn)


def test_exports_of_old_have_it_in_the_fields(alice):
    fields = {"sender": "import", "message": {"reasoning_content": "Hm."}}
    rows = [
        {"role": "human", "content": "?"},
        {"role": "assistant", "content": "!", "provider_fields": fields},
    ]
    answer = api(alice).post("/api/v1/chats/import/", {"messages": rows})
    assert answer.status_code == 201, answer.json()
    assert ChatMessage.objects.get(role="assistant").reasoning == "Hm."


# -- Turns that break off --------------------------------------------------------------------------


def test_a_provider_that_is_lost_while_it_thinks_is_asked_again(alice, new_model):
    new_model("fake-deepseek-cut-once")
    turn = ask(alice, "fake-deepseek-cut-once", SIX)
    assert run(turn) == TurnStatus.COMPLETED, turn.error
    assert thoughts_streamed(turn) == "I" + thought_of(turn)
    restarted = [e for e in stream_of(turn) if e["event"] == "turn.restarted"]
    assert [(e["attempt"], e["step"]) for e in restarted] == [(1, 1)]
    assert_stored_is_what_was_streamed(turn)


def test_what_was_thought_is_saved_while_it_is_thought(alice, new_model, monkeypatch):
    monkeypatch.setattr("chats.running.partial_text.PARTIAL_SECONDS", 0.05)
    new_model("fake-deepseek-hang")
    turn = ask(alice, "fake-deepseek-hang", SIX)
    with running(turn) as this:
        this.wait_for(lambda: Turn.objects.get().partial_reasoning == "I")
        state = asyncio.run(state_of(turn.pk))
        assert state is not None
        assert b'"reasoning":{"1":"I"}' in state.snapshot
        this.wait_for(lambda: seen_of(turn).reasoning == {1: "I"})
        this.stop(StopReason.CANCELLED)
    assert turn.status == TurnStatus.CANCELLED
    assert (turn.partial_reasoning, messages_of_turn(turn)) == ("", [])
    assert_stored_is_what_was_streamed(turn)
    assert UsageRecord.objects.get(turn_id=turn.pk).reasoning_tokens


def test_an_answer_that_breaks_off_keeps_what_was_thought(alice, new_model):
    new_model("fake-deepseek-cut-mid")
    turn = ask(alice, "fake-deepseek-cut-mid", SIX)
    assert run(turn) == TurnStatus.INCOMPLETE
    (answer,) = messages_of_turn(turn)
    assert (answer["content"], answer["reasoning"][:9]) == (answer_text(1), "I thought")
    assert_stored_is_what_was_streamed(turn)
