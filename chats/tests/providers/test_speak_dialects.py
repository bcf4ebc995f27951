"""Test a full turn in each dialect, with a server that streams and with one that never does."""

import json
from typing import Annotated

import pytest

from chats.models import ChatMessage
from chats.tests.runs import ask, ask_in, assert_stored_is_what_was_streamed, run, unmarked
from engine.events import TurnStatus
from tests.fakes.answers import answer_text
from tools.calling.registry import register_tool

pytestmark = pytest.mark.django_db(transaction=True)

TOGETHER = ["tool_call", "tool_call", "tool", "tool", "assistant"]
ONE_BY_ONE = ["tool_call", "tool", "tool_call", "tool", "assistant"]
SERVERS = ["fake-parallel-tools", "fake-json-parallel-tools"]


@pytest.fixture(autouse=True)
def two_tools(monkeypatch):
    monkeypatch.setattr("tools.calling.registry._tools", {})

    @register_tool(harmless=True)
    def clock(city: Annotated[str, "Where"]) -> str:
        """Tells the time."""
        return f"Noon in {city}."

    @register_tool(harmless=True)
    def weather(city: Annotated[str, "Where"]) -> str:
        """Tells the weather."""
        return f"Rain in {city}."


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    ("dialect", "roles"),
    [("tools", TOGETHER), ("functions", ONE_BY_ONE), ("chatglm3", ONE_BY_ONE)],
)
def test_two_calls_and_the_answer(alice, new_model, fake_provider, dialect, roles, server):
    new_model(server, tool_dialect=dialect)
    question = f"Weather and time, {dialect}, {server}? [[fake tokens=5]]"
    turn = ask(alice, server, content=question)
    assert run(turn) == TurnStatus.COMPLETED
    assert_stored_is_what_was_streamed(turn)
    rows = list(ChatMessage.objects.filter(turn=turn, step__isnull=False).order_by("position"))
    assert [row.role for row in rows] == roles
    results = [row.content for row in rows if row.role == "tool"]
    assert sorted(results) == ["Noon in text.", "Rain in text."]
    assert rows[-1].content == answer_text(5)
    assert turn.usage["completion_tokens"] > 0
    requests = fake_provider.requests(question)
    assert len(requests) == (2 if dialect == "tools" else 3)
    assert all("\\n</data-" in json.dumps(body["messages"][-1]) for body in requests[1:])
    assert all(("tools" if dialect == "tools" else "functions") in body for body in requests)


@pytest.mark.parametrize("dialect", ["tools", "functions", "chatglm3"])
def test_a_stored_parallel_round_is_replayed(alice, new_model, fake_provider, dialect):
    """Asked of one model, and replayed to another with an older dialect."""
    new_model("fake-parallel-tools")
    new_model(f"fake-{dialect}", tool_dialect=dialect)
    turn = ask(alice, "fake-parallel-tools", content="Both? [[fake tokens=1]]")
    assert run(turn) == TurnStatus.COMPLETED
    turn.assistant.model = f"fake-{dialect}"
    turn.assistant.save()
    following = f"Again in {dialect}? [[fake tokens=1]]"
    assert run(ask_in(turn.chat, alice, following)) == TurnStatus.COMPLETED
    messages = unmarked(fake_provider.requests(following)[-1]["messages"])
    expected = {
        "tools": ["user", "assistant", "tool", "tool", "assistant", "user"],
        "functions": ["user", *["assistant", "function"] * 2, "assistant", "user"],
        "chatglm3": ["user", *["assistant", "function"] * 2, "assistant", "user"],
    }
    assert [message["role"] for message in messages] == expected[dialect]
    said = json.dumps(messages)
    assert "Noon in text." in said
    assert "Rain in text." in said
