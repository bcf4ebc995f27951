"""Stored chats with models of Anthropic's and OpenAI's own APIs, over real HTTP.

The servers refuse a conversation whose thoughts are not signed as they were (`tests.fakes.anthropic`,
`tests.fakes.responses`).
"""

from typing import Any

import pytest

from chats.models import ChatMessage, Turn
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
from providers.models import UsageRecord

pytestmark = pytest.mark.django_db(transaction=True)

SIX = "[[fake tokens=6]]"
LOOP = marker("calculate", {"expression": "9+6"})
TWO_CALLS = f"{LOOP[:-2]} times=2]]"
TWO_ROUNDS = f"{LOOP[:-2]} rounds=2]]"
FIELDS: dict[str, dict[str, Any]] = {
    "claude-thinks": {
        "tool_dialect": "anthropic",
        "forced_parameters": {"thinking": {"type": "enabled", "budget_tokens": 2_048}},
    },
    "gpt-thinks": {"tool_dialect": "responses"},
}
BOTH = list(FIELDS)


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch):
    monkeypatch.setattr(openai_model, "_refused_parameters", {})


@pytest.fixture
def thinker(new_model):
    return lambda name: new_model(name, **FIELDS[name])


def completes(turn: Turn) -> bool:
    assert run(turn) == TurnStatus.COMPLETED, turn.error
    return True


@pytest.mark.parametrize("question", [LOOP, TWO_CALLS, TWO_ROUNDS])
@pytest.mark.parametrize("name", BOTH)
def test_a_whole_loop_works_and_so_do_later_turns(alice, thinker, name, question):
    thinker(name)
    turn = ask(alice, name, question)
    assert completes(turn)
    for later in (SIX, question, f"And? {SIX}"):
        assert completes(ask_in(turn.chat, alice, later))
    assert "15" in ChatMessage.objects.filter(role="tool").latest("created_at").content
    assert_stored_is_what_was_streamed(turn)


def test_cached_tokens_are_counted(alice, thinker):
    thinker("gpt-thinks")
    assert completes(ask(alice, "gpt-thinks", SIX))
    row = UsageRecord.objects.get()
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens) == (40, 24, 9)
    assert not row.estimated


@pytest.mark.parametrize("method", ["store_result", "store_reply"])
@pytest.mark.parametrize("name", BOTH)
def test_a_turn_goes_on_where_a_worker_died(alice, thinker, monkeypatch, name, method):
    """Behind the second round's calls, or behind a result: the stored rows are all that is left."""
    thinker(name)
    turn = ask(alice, name, TWO_ROUNDS)
    die_the_second_time(turn, monkeypatch, method)
    assert completes(turn)
    assert turn.step == 3
