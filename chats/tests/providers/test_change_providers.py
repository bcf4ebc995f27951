"""A chat that changes its provider after every turn, with tools in each. Every fake provider refuses
what the real one refuses: others' fields, others' ids of calls, what is missing of its own.
"""

from typing import Any

import pytest

from chats.messages.transcript import path
from chats.models import Chat
from chats.services import update_chat
from chats.tests.rows import messages, new_assistant, new_chat, of_chat
from chats.tests.runs import ask_in, assert_stored_is_what_was_streamed, marker, run
from engine.events import TurnStatus
from engine.provider import openai_model
from providers.models import LanguageModel, Provider
from tests.fixtures.personas import api

pytestmark = pytest.mark.django_db(transaction=True)

TWO_CALLS = f"{marker('calculate', {'expression': '9+6'})[:-2]} times=2]]"
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 2_048}}
WAY: dict[str, dict[str, Any]] = {
    "fake-openai": {},
    "fake-gemini": {},
    "fake-mistral": {},
    "fake-anthropic": {},  # its compatible address
    "claude-thinks": {"tool_dialect": "anthropic", "extra_parameters": THINKING},
    "fake-deepseek": {},
    "gpt-thinks": {"tool_dialect": "responses"},
    "fake-chatglm3": {"tool_dialect": "chatglm3"},
}


@pytest.fixture(autouse=True)
def models(provider, new_model, monkeypatch):
    monkeypatch.setattr(openai_model, "_mends", {})
    monkeypatch.setattr(openai_model, "_refused_parameters", {})
    for name, fields in WAY.items():
        new_model(name, **fields)
    # What is known of it goes by its address.
    of_its_own = Provider.objects.create(
        name="deepseek", base_url=provider.base_url.replace("/v1", "/api.deepseek.com/v1")
    )
    LanguageModel.objects.filter(alias="fake-deepseek").update(provider=of_its_own)


def goes_on(chat: Chat, persona: Any, model: str) -> Any:
    chat = Chat.objects.get(pk=chat.pk)
    update_chat(chat, assistant=new_assistant(persona, model=model))
    turn = ask_in(chat, persona, TWO_CALLS)
    assert run(turn) == TurnStatus.COMPLETED, (model, turn.error)
    assert_stored_is_what_was_streamed(turn)
    return turn


def roles_in(chat: Chat) -> list[str]:
    leaf_id = Chat.objects.get(pk=chat.pk).active_leaf_id
    return [message.role for message in path(chat.pk, leaf_id)]


def test_no_request_is_refused_and_the_transcript_is_whole(alice):
    """Twice the whole way: the second time each finds its own calls again among the others'."""
    chat = new_chat(alice, assistant=new_assistant(alice))
    for lap in (1, 2):
        for model in WAY:
            turn = goes_on(chat, alice, model)
            assert turn.step == 2 if model != "fake-chatglm3" else turn.step >= 2, (lap, model)
    assert openai_model._mends == {}
    assert not any(openai_model._refused_parameters.values())
    roles = roles_in(chat)
    assert roles.count("human") == roles.count("assistant") == 2 * len(WAY)
    assert roles.count("tool_call") == roles.count("tool") >= 4 * (len(WAY) - 1)
    listed = api(alice).get(f"{messages(chat)}?limit=200").json()["results"]
    thoughtful = [m for m in listed if m["reasoning"]]
    assert len(thoughtful) >= 2 * 4  # four of them think


def test_an_exported_chat_goes_the_same_way(alice):
    chat = new_chat(alice, assistant=new_assistant(alice))
    for model in WAY:
        goes_on(chat, alice, model)
    body = api(alice).get(of_chat(chat, "export/")).json()
    answer = api(alice).post("/api/v1/chats/import/", body)
    assert answer.status_code == 201, answer.json()
    new = Chat.objects.get(pk=answer.json()["id"])
    assert roles_in(new) == roles_in(chat)
    for model in WAY:
        goes_on(new, alice, model)
    assert openai_model._mends == {}
