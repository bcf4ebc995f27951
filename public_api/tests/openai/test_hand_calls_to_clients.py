"""Functions that a client of /v1/chat/completions brings: their calls are its own to answer."""

import json
from typing import Any

import pytest

from chats.models import Turn
from chats.tests.rows import new_assistant
from chats.tests.runs import marker
from engine.events import TurnStatus
from public_api.tests.completions import (
    SIX,
    WEATHER,
    ask,
    deltas,
    said,
    streamed,
)
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_call_of_the_clients_function_is_its_own_to_answer(client, model):
    question = said(marker("weather", {"city": "Oslo"}))
    first = ask(client, [question], tools=[WEATHER])
    choice = first.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    (call,) = choice.message.tool_calls
    assert (call.type, call.function.name) == ("function", "weather")
    assert json.loads(call.function.arguments) == {"city": "Oslo"}
    assert Turn.objects.get().status == TurnStatus.COMPLETED
    result = {"role": "tool", "tool_call_id": call.id, "content": "Rain"}
    last = ask(client, [question, choice.message, result], tools=[WEATHER])
    assert last.choices[0].finish_reason == "stop"
    assert last.choices[0].message.content == answer_text(6)


def test_calls_are_streamed_as_deltas(client, model):
    chunks = streamed(client, marker("weather", {"city": "Oslo"}), tools=[WEATHER])
    first, called, end = deltas(chunks)
    assert first == {"role": "assistant", "content": None, "refusal": None}
    (piece,) = called["tool_calls"]
    assert piece["index"] == 0
    assert piece["id"]
    assert json.loads(piece["function"]["arguments"]) == {"city": "Oslo"}
    assert end == {}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_several_calls_at_once(client, model):
    content = f"{marker('weather', {'city': 'Oslo'})[:-2]} times=2]]"
    calls = ask(client, content, tools=[WEATHER]).choices[0].message.tool_calls
    assert len({call.id for call in calls}) == 2
    pieces = [d["tool_calls"][0] for d in deltas(streamed(client, content, tools=[WEATHER]))[1:-1]]
    assert [piece["index"] for piece in pieces] == [0, 1]


def test_ours_are_run_and_theirs_returned_from_one_reply(client, alice, new_model, fake_provider):
    """fake-parallel-tools calls the first two functions it is offered."""
    new_model("fake-parallel-tools")
    new_assistant(
        alice,
        model="fake-parallel-tools",
        slug="ada",
        disabled_builtin_tools=["calculate", "web_browse"],
    )
    answer = ask(client, "both e4a1", model="assistant:ada", tools=[WEATHER])
    offered = [tool["function"]["name"] for tool in fake_provider.requests("e4a1")[0]["tools"]]
    assert offered == ["current_time", "weather"]
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert [call.function.name for call in choice.message.tool_calls] == ["weather"]
    written: Any = Turn.objects.get().output
    assert [m["role"] for m in written["messages"]] == ["tool_call", "tool_call", "tool"]
    assert written["messages"][2]["tool_call"]["name"] == "current_time"


def test_a_function_of_the_clients_takes_the_place_of_ours(client, alice, new_model):
    new_model()
    new_assistant(alice, model="fake-model", slug="ada")
    mine = {"type": "function", "function": {"name": "calculate"}}
    question = marker("calculate", {"anything": 1})
    answer = ask(client, question, model="assistant:ada", tools=[mine])
    assert answer.choices[0].finish_reason == "tool_calls"


def test_a_forced_call(client, model, fake_provider):
    forced = {"type": "function", "function": {"name": "weather"}}
    answer = ask(client, "c0de", tools=[WEATHER], tool_choice=forced)
    assert answer.choices[0].message.tool_calls[0].function.name == "weather"
    assert fake_provider.requests("c0de")[0]["tool_choice"] == forced
    free = ask(client, SIX, tools=[WEATHER], tool_choice="none", parallel_tool_calls=False)
    assert free.choices[0].message.content == answer_text(6)


def test_functions_of_old(client, model):
    question = said(marker("weather", {"city": "Oslo"}))
    old: Any = {"functions": [WEATHER["function"]], "function_call": "auto"}
    first = ask(client, [question], **old).to_dict()["choices"][0]
    assert first["finish_reason"] == "function_call"
    assert first["message"]["function_call"]["name"] == "weather"
    assert "tool_calls" not in first["message"]
    result = {"role": "function", "name": "weather", "content": "Rain"}
    last = ask(client, [question, first["message"], result], **old)
    assert last.choices[0].message.content == answer_text(6)
    chunks = streamed(client, [question], **old)
    assert deltas(chunks)[1]["function_call"]["name"] == "weather"
    assert chunks[-1]["choices"][0]["finish_reason"] == "function_call"


def test_a_model_of_the_old_dialect_calls_the_clients_function(client, new_model):
    new_model(tool_dialect="functions")
    answer = ask(client, marker("weather", {"city": "Oslo"}), tools=[WEATHER])
    assert answer.choices[0].message.tool_calls[0].function.name == "weather"
