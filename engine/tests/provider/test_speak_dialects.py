"""Whole requests in each dialect, as a provider receives them from the real client.

The files in cases/requests are what goes over the wire: `replayed` is a stored conversation with a
parallel round (two calls, an image that one of them made), `round` the requests of one turn that
calls two tools and answers. Ids of calls, which providers make, are written `call_1`, `call_2`.
"""

import asyncio
import itertools
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson
import pytest

from engine import loop
from engine.history.normaliser import HistoryProfile
from engine.loop_events import CallFinished, LoopEvent, Reply
from engine.messages import Attachment, Message
from engine.provider.client import Endpoint
from engine.provider.model import ModelProfile, ModelRequest
from engine.provider.openai_model import OpenAIModel
from engine.provider.reply import RetryPolicy
from engine.tests.history.cases import normalise
from engine.tool_calls import ToolCall
from engine.tools import ToolResult, ToolSpec
from engine.trust import Exposure
from tests.fakes.answers import answer_text
from tests.fixtures.provider import RunningProvider

CASES = Path(__file__).parents[1] / "cases" / "requests"
DIALECTS = ["tools", "functions", "chatglm3"]
CITY = {"type": "string", "description": "Where"}
PLACE = {"type": "object", "properties": {"city": CITY}, "required": ["city"]}
TOOLS = (
    ToolSpec("weather", "Tells the weather.", PLACE),
    ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {"city": CITY}}),
)
QUESTION = "Weather and time? [[fake tokens=4]]"

serial = itertools.count()


class Tools:
    """Says what it was asked."""

    specs = TOOLS

    def is_safe_to_repeat(self, name: str) -> bool:
        return False

    def asks_first(self, call: ToolCall, exposure: Exposure) -> bool:
        return False

    def is_client_tool(self, name: str) -> bool:
        return False

    async def call(self, call: ToolCall, exposure: Exposure) -> ToolResult:
        city = json.loads(call.arguments).get("city")
        return ToolResult(call.id, True, f"{call.name} of {city}")


def golden(dialect: str) -> dict[str, Any]:
    return dict(json.loads((CASES / f"{dialect}.json").read_text(encoding="utf-8")))


def model_of(provider: RunningProvider, name: str, dialect: Any) -> OpenAIModel:
    profile = ModelProfile(name, vision=True, tool_dialect=dialect)
    return OpenAIModel(profile, Endpoint(provider.base_url, provider.api_key))


def received(provider: RunningProvider, mark: str) -> list[dict[str, Any]]:
    """The requests that hold this mark, without it, with plain ids of calls and one model's name."""
    text = orjson.dumps(provider.requests(mark)).decode().replace(mark, "")
    bodies: list[dict[str, Any]] = json.loads(text)
    for body in bodies:
        body["model"] = "fake"
        names: dict[str, str] = {}
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):
                call["id"] = names.setdefault(call["id"], f"call_{len(names) + 1}")
            if "tool_call_id" in message:
                message["tool_call_id"] = names[message["tool_call_id"]]
    return bodies


def stored_conversation(mark: str) -> list[Message]:
    """As the rows of a chat say it: results came in the other order, one brought an image."""
    weather = ToolCall("a", "weather", '{"city": "Ulm"}', "reply")
    clock = ToolCall("b", "clock", '{"city": "Oslo"}', "reply")
    chart = Attachment("chart.png", "image/png", "data:image/png;base64,AAAA")
    return [
        Message("human", f"Weather and time?{mark}"),
        Message("tool_call", "Let me look.", tool_call=weather),
        Message("tool_call", "", tool_call=clock),
        Message("tool", "noon", tool_call=clock),
        Message("tool", "rain", tool_call=weather),
        Message("file", file=chart, tool_call=weather),
        Message("assistant", "Rain at noon."),
        Message("human", "And tomorrow? [[fake tokens=1]]"),
    ]


async def told(model: OpenAIModel, messages: Any) -> list[LoopEvent]:
    toolbox = Tools()
    request = ModelRequest(messages, tools=TOOLS)
    loop_events = loop.run(
        model, request, toolbox=toolbox, retry_policy=RetryPolicy(), max_tool_rounds=5
    )
    async with asyncio.timeout(30), aclosing(loop_events):
        return [loop_event async for loop_event in loop_events]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stored_parallel_round_is_replayed(fake_provider: RunningProvider, dialect: str) -> None:
    mark = f" #{next(serial)}{dialect}replayed"
    messages = normalise(
        stored_conversation(mark),
        system_prompts=["You are Amber."],
        volatile=["Alice lives in Ulm."],
        profile=HistoryProfile(vision=True),
        responding_assistant_id=None,
    )
    asyncio.run(told(model_of(fake_provider, "fake-model", dialect), messages))
    (body,) = received(fake_provider, mark)
    assert body == golden(dialect)["replayed"]


@pytest.mark.parametrize("name", ["fake-parallel-tools", "fake-json-parallel-tools"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_round(fake_provider: RunningProvider, dialect: str, name: str) -> None:
    """Two calls and the answer; from a server that streams, and from one that never does."""
    mark = f" #{next(serial)}{dialect}{name}"
    messages = [{"role": "user", "content": f"{QUESTION}{mark}"}]
    seen = asyncio.run(told(model_of(fake_provider, name, dialect), messages))
    called = [h.call.name for h in seen if isinstance(h, CallFinished)]
    replies = [h for h in seen if isinstance(h, Reply)]
    assert called == ["weather", "clock"]
    together = [["weather", "clock"], []]
    one_by_one = [["weather"], ["clock"], []]
    asked = [[call.name for call in reply.calls] for reply in replies]
    assert asked == (together if dialect == "tools" else one_by_one)
    assert [r.finish_reason for r in replies] == ["tool_calls"] * (len(replies) - 1) + ["stop"]
    assert replies[-1].text == answer_text(4)
    assert all(reply.usage for reply in replies)
    assert received(fake_provider, mark) == golden(dialect)["round"]
