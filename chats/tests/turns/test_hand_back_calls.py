"""Test turns whose last calls are for the client to make: they end, even if a worker died."""

import pytest

from chats import services
from chats.call_services import ask_in_chat
from chats.context.call_options import CallOptions
from chats.models import ChatMessage, Turn
from chats.running.resumption import UNKNOWN_OUTCOME
from chats.tests.event_streams import stream_of
from chats.tests.rows import expire, new_assistant, new_chat, take_over
from chats.tests.runs import (
    assert_stored_is_what_was_streamed,
    marker,
    names_of,
    prepared_for,
    run,
)
from chats.turns import sweep
from engine.events import TurnStatus
from engine.tools import ToolSpec
from tools.calling.registry import register_tool

pytestmark = pytest.mark.django_db(transaction=True)

CLIENT_TOOLS = CallOptions(
    model="fake-model", is_bare=True, tools=(ToolSpec("weather", "The weather there."),)
)
QUESTION = marker("weather", {"city": "Oslo"})


@pytest.fixture(autouse=True)
def model(new_model):
    return new_model()


def stateless(alice, content=QUESTION, options=CLIENT_TOOLS):
    return services.start_stateless_turn(
        alice.principal, messages=[{"role": "human", "content": content}], options=options
    )


def in_chat(alice, content=QUESTION, options=CLIENT_TOOLS, assistant=None):
    return ask_in_chat(
        new_chat(alice),
        alice.principal,
        entries=[{"role": "human", "content": content}],
        assistant=assistant,
        options=options,
    )


@pytest.mark.parametrize("ask", [stateless, in_chat])
def test_the_turn_completes_with_the_call(alice, ask):
    turn = ask(alice)
    assert run(turn) == TurnStatus.COMPLETED
    assert turn.finish_reason == "tool_calls"
    assert names_of(turn) == ["turn.started", "message.stored", "turn.completed"]
    assert_stored_is_what_was_streamed(turn)


def test_a_bare_model_is_offered_no_tool_of_ours(alice):
    turn = stateless(alice)
    prepared = prepared_for(turn)
    assert [tool.name for tool in prepared.request.tools] == ["weather"]


@pytest.mark.parametrize("ask", [stateless, in_chat])
def test_a_worker_that_dies_behind_the_call_leaves_the_next_one_to_end_the_turn(
    alice, ask, monkeypatch
):
    """The call is stored, and nobody may make it here or call its outcome unknown."""
    from chats.running.writer import TurnWriter

    return_client_calls = TurnWriter.return_client_calls

    def die(*_):
        take_over(turn)
        expire(turn)
        return return_client_calls(*_)

    monkeypatch.setattr(TurnWriter, "return_client_calls", die)
    turn = ask(alice)
    assert run(turn) is None
    monkeypatch.setattr(TurnWriter, "return_client_calls", return_client_calls)
    assert sweep.sweep_turns() == [turn.pk]
    assert run(turn, "w3") == TurnStatus.COMPLETED
    assert turn.finish_reason == "tool_calls"
    assert not [e for e in stream_of(turn) if e["event"] == "tool.finished"]
    assert_stored_is_what_was_streamed(turn)


def test_in_an_unattended_chat_a_call_that_asks_first_is_refused_at_once(alice):
    made = []

    @register_tool(asks_first=True)
    def send() -> str:
        """Sends."""
        made.append(1)
        return "Sent."

    assistant = new_assistant(alice, model="fake-model")
    options = CallOptions(is_unattended=True)
    turn = in_chat(alice, marker("send", {}), options, assistant)
    assert run(turn) == TurnStatus.COMPLETED
    assert not made
    assert "nobody can" in ChatMessage.objects.get(role="tool").content
    assert UNKNOWN_OUTCOME not in ChatMessage.objects.get(role="tool").content
    assert Turn.objects.get().status == TurnStatus.COMPLETED
