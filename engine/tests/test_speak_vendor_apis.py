"""Whole rounds in the APIs of Anthropic and OpenAI's responses, against strict servers of both.

The servers refuse what the real ones refuse (`tests.fake_anthropic`, `tests.fake_responses`): a round that ends
well was spoken rightly. What goes over the wire is also held by `cases/requests`.
"""

import asyncio
import itertools
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from engine import loop
from engine.loop_events import CallFinished, Reply
from engine.messages import Message, ProviderMessage
from engine.provider.model import ModelProfile, ModelRequest, ParameterRules, ProviderError
from engine.provider.openai_model import OpenAIModel
from engine.provider.reply import RetryPolicy
from engine.tests.test_speak_dialects import TOOLS, Tools, stored_conversation
from engine.history.normaliser import HistoryProfile, normalise
from engine.tools import ToolSpec
from tests.fixtures_provider import RunningProvider

CASES = Path(__file__).with_name("cases") / "requests"
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 2_048}}
ONCE = RetryPolicy(retries=0)
QUESTION: list[ProviderMessage] = [
    {"role": "system", "content": "You are Amber."},
    {"role": "user", "content": "Weather and time?"},
]

serial = itertools.count()


def model_of(
    provider: RunningProvider, name: str, *, forced: dict[str, Any] | None = None
) -> OpenAIModel:
    dialect = "anthropic" if name.startswith("claude") else "responses"
    rules = ParameterRules(forced=forced or {})
    profile = ModelProfile(name, vision=True, tool_dialect=dialect, parameters=rules, sender="me")
    return OpenAIModel(profile, base_url=provider.base_url, api_key=provider.api_key)


def replies_of(
    model: OpenAIModel, messages: Any, *, tools: tuple[ToolSpec, ...] = TOOLS, **asked: Any
) -> list[Reply]:
    async def told() -> list[Reply]:
        request = ModelRequest(messages, tools=tools, **asked)
        events = loop.run(model, request, toolbox=Tools(), retry_policy=ONCE, max_tool_rounds=3)
        async with asyncio.timeout(30), aclosing(events):
            return [each async for each in events if isinstance(each, Reply)]

    return asyncio.run(told())


def last_requests(provider: RunningProvider, mark: str) -> list[dict[str, Any]]:
    return provider.requests(mark)


@pytest.mark.parametrize("name", ["claude-calls", "claude-whole", "gpt-calls", "gpt-whole"])
def test_parallel_calls_and_the_answer(fake_provider: RunningProvider, name: str) -> None:
    """Streamed, and from a server that never streams."""
    first, last = replies_of(model_of(fake_provider, name), QUESTION)
    assert [call.name for call in first.calls] == ["weather", "clock"]
    assert [json.loads(call.arguments) for call in first.calls] == [{"city": "Ulm"}] * 2
    assert (first.finish_reason, last.finish_reason) == ("tool_calls", "stop")
    assert last.text == "weather of Ulm clock of Ulm"
    assert first.usage is not None and last.usage is not None
    assert first.usage.completion_tokens > 0 and last.usage.prompt_tokens > 0


@pytest.mark.parametrize(
    ("name", "forced"), [("claude-thinks", THINKING), ("gpt-thinks", None), ("claude-thinks", {"reasoning_effort": "high"})]
)
def test_thoughts_go_back_signed_with_the_calls(
    fake_provider: RunningProvider, name: str, forced: dict[str, Any] | None
) -> None:
    """The server refuses the second step without them, and if a letter of them differs."""
    first, last = replies_of(model_of(fake_provider, name, forced=forced), QUESTION)
    assert [call.name for call in first.calls] == ["weather", "clock"]
    assert last.text == "weather of Ulm clock of Ulm"
