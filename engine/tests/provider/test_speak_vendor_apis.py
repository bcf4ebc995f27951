"""Whole rounds in the APIs of Anthropic and OpenAI's responses, against strict servers of both.

The servers refuse what the real ones refuse (`tests.fakes.anthropic`, `tests.fakes.responses`): a round that ends
well was spoken rightly. What goes over the wire is also held by `cases/requests`.
"""

import asyncio
import itertools
import json
import re
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson
import pytest

from engine import loop
from engine.history.normaliser import HistoryProfile
from engine.loop_events import Reply
from engine.messages import Message, ProviderMessage, ResultMessage
from engine.provider.client import Endpoint
from engine.provider.model import ModelProfile, ModelRequest, ParameterRules, ProviderError
from engine.provider.openai_model import OpenAIModel
from engine.provider.reply import RetryPolicy
from engine.provider_fields import with_fields
from engine.tests.history.cases import normalise
from engine.tests.provider.test_speak_dialects import TOOLS, Tools, stored_conversation
from engine.tool_calls import chat_form
from engine.tools import ToolSpec
from tests.fixtures.provider import RunningProvider

CASES = Path(__file__).parents[1] / "cases" / "requests"
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
    return OpenAIModel(profile, Endpoint(provider.base_url, provider.api_key))


def replies_of(
    model: OpenAIModel, messages: Any, *, tools: tuple[ToolSpec, ...] = TOOLS, **asked: Any
) -> list[Reply]:
    async def told() -> list[Reply]:
        request = ModelRequest(messages, tools=tools, **asked)
        events = loop.run(model, request, toolbox=Tools(), retry_policy=ONCE, max_tool_rounds=3)
        async with asyncio.timeout(30), aclosing(events):
            return [each async for each in events if isinstance(each, Reply)]

    return asyncio.run(told())


def received(provider: RunningProvider, mark: str) -> list[dict[str, Any]]:
    """The requests that hold this mark, without it, and with plain ids and signatures."""
    text = orjson.dumps(provider.requests(mark)).decode().replace(mark, "")
    for pattern in (r"(toolu|call|rs)_[0-9a-f]{12}\d?", r"(sig|gAAAA)[0-9a-f]{24}"):
        names = list(dict.fromkeys(match[0] for match in re.finditer(pattern, text)))
        for number, name in enumerate(names, 1):
            text = text.replace(name, f"{re.match('[A-Za-z]+', name)[0]}_{number}")  # type: ignore[index]
    return list(json.loads(text))


def golden(name: str) -> Any:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "forced"), [("claude-thinks", THINKING), ("gpt-thinks", {"reasoning_effort": "low"})]
)
def test_what_goes_over_the_wire(
    fake_provider: RunningProvider, name: str, forced: dict[str, Any]
) -> None:
    """A stored conversation with a parallel round and an image, then a round of its own."""
    mark = f" #{next(serial)}wire"
    model = model_of(fake_provider, name, forced=forced)
    messages = normalise(
        [*stored_conversation(mark)[:-1], Message("human", "And tomorrow?")],
        system_prompts=["You are Amber."],
        volatile=["Alice lives in Ulm."],
        profile=HistoryProfile(vision=True),
        responding_assistant_id=None,
    )
    replies_of(
        model,
        messages,
        temperature=0.5,
        stop=["END"],
        max_output_tokens=500,
        seed=7,
        extra={"presence_penalty": 1, "parallel_tool_calls": False},
    )
    assert received(fake_provider, mark) == golden("anthropic" if "claude" in name else "responses")


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
    ("name", "forced"),
    [
        ("claude-thinks", THINKING),
        ("gpt-thinks", None),
        ("claude-thinks", {"reasoning_effort": "high"}),
    ],
)
def test_thoughts_go_back_signed_with_the_calls(
    fake_provider: RunningProvider, name: str, forced: dict[str, Any] | None
) -> None:
    """The server refuses the second step without them, and if a letter of them differs."""
    first, last = replies_of(model_of(fake_provider, name, forced=forced), QUESTION)
    assert [call.name for call in first.calls] == ["weather", "clock"]
    assert last.text == "weather of Ulm clock of Ulm"


def test_a_conversation_goes_on_from_stored_thoughts(fake_provider: RunningProvider) -> None:
    """Thoughts of an earlier turn, which stood between texts and calls, come back in their order."""
    for name, forced in (("claude-thinks", THINKING), ("gpt-thinks", None)):
        model = model_of(fake_provider, name, forced=forced)
        first, last = replies_of(model, QUESTION)
        assert first.reasoning.startswith(("The question has", "There are"))
        turn: list[ProviderMessage] = [
            *QUESTION,
            with_fields(
                {
                    "role": "assistant",
                    "content": first.text,
                    "tool_calls": [chat_form(call) for call in first.calls],
                },
                first.provider_fields,
            ),
            *(
                ResultMessage(role="tool", tool_call_id=call.id, content="rain")
                for call in first.calls
            ),
            with_fields({"role": "assistant", "content": last.text}, last.provider_fields),
            {"role": "user", "content": "And tomorrow?"},
        ]
        assert [reply.text for reply in replies_of(model, turn)][
            -1
        ] == "weather of Ulm clock of Ulm"


def test_the_last_round_offers_no_tools(fake_provider: RunningProvider) -> None:
    """Calls that were made are spoken of, and none can be made."""
    for name in ("claude-calls", "gpt-calls"):
        model = model_of(fake_provider, name)
        first, *_ = replies_of(model, QUESTION)
        history = [
            *QUESTION,
            {"role": "assistant", "content": "", "tool_calls": [chat_form(first.calls[0])]},
            {"role": "tool", "tool_call_id": first.calls[0].id, "content": "rain"},
        ]
        (last,) = replies_of(model, history, tools=())
        assert last.text == "rain"


@pytest.mark.parametrize(
    ("name", "code", "pause"),
    [
        ("claude-overloaded", "provider_unavailable", 1.5),
        ("claude-limited", "provider_rate_limited", 1.5),
        ("claude-long", "context_too_long", None),
        ("gpt-limited", "provider_rate_limited", 1.5),
    ],
)
def test_refusals_are_told_apart(
    fake_provider: RunningProvider, name: str, code: str, pause: float | None
) -> None:
    with pytest.raises(ProviderError) as caught:
        replies_of(model_of(fake_provider, name), QUESTION, tools=())
    assert (caught.value.code, caught.value.retry_after_seconds) == (code, pause)


@pytest.mark.parametrize("name", ["claude-breaks", "gpt-breaks", "gpt-failed"])
def test_an_error_after_the_first_words_is_a_loss(
    fake_provider: RunningProvider, name: str
) -> None:
    with pytest.raises(ProviderError) as caught:
        replies_of(model_of(fake_provider, name), QUESTION, tools=())
    assert caught.value.code == "provider_lost"


def test_a_wrong_key_is_told(fake_provider: RunningProvider) -> None:
    profile = ModelProfile("claude-calls", tool_dialect="anthropic")
    model = OpenAIModel(profile, Endpoint(fake_provider.base_url, ""))
    with pytest.raises(ProviderError) as caught:
        replies_of(model, QUESTION)
    assert caught.value.code == "provider_auth"


def test_a_reply_that_was_cut_says_so(fake_provider: RunningProvider) -> None:
    (reply,) = replies_of(model_of(fake_provider, "gpt-cut"), QUESTION, tools=())
    assert (reply.text, reply.finish_reason) == ("Hello from OpenAI.", "length")


@pytest.mark.parametrize(
    ("name", "forced", "dropped"),
    [
        ("gpt-plain", None, "include"),
        ("claude-older", {"reasoning_effort": "low"}, "thinking"),
        ("claude-old-effort", {"reasoning_effort": "low"}, "output_config"),
    ],
)
def test_what_a_model_refuses_is_left_out_and_remembered(
    fake_provider: RunningProvider, name: str, forced: dict[str, Any] | None, dropped: str
) -> None:
    mark = f" #{next(serial)}refused"
    model = model_of(fake_provider, name, forced=forced)
    for _ in range(2):
        replies_of(model, [{"role": "user", "content": f"Hello{mark}"}], tools=())
    bodies = fake_provider.requests(mark)
    has_it = [dropped in body for body in bodies]
    assert has_it == [True, False, False]


def test_the_cache_is_read_from_step_to_step_and_turn_to_turn(
    fake_provider: RunningProvider,
) -> None:
    """The server caches as the real one does: up to marks, found by prefix."""
    model = model_of(fake_provider, "claude-calls")
    mark = f" #{next(serial)}cache"

    def asked(*questions: str, varying: str) -> list[ProviderMessage]:
        *earlier, last = questions
        said: list[ProviderMessage] = [{"role": "system", "content": f"You are Amber.{mark}" * 20}]
        for question in earlier:
            said += [{"role": "user", "content": question}, {"role": "assistant", "content": "So."}]
        return [*said, {"role": "system", "content": varying}, {"role": "user", "content": last}]

    first, second = (r.usage for r in replies_of(model, asked("One?", varying="It is noon.")))
    assert first is not None and second is not None
    assert (first.cached_tokens, second.cached_tokens > 0) == (0, True)
    third, *_ = (r.usage for r in replies_of(model, asked("One?", "Two?", varying="It is one.")))
    fourth, *_ = (
        r.usage for r in replies_of(model, asked("One?", "Two?", "Three?", varying="It is two."))
    )
    assert third is not None and fourth is not None
    system_tokens = third.cached_tokens
    assert 0 < system_tokens < third.prompt_tokens
    assert fourth.cached_tokens > system_tokens  # as far as the question before


def test_images_go_as_data_and_as_addresses(fake_provider: RunningProvider) -> None:
    for url in ("data:image/png;base64,AAAA", "https://a.example/b.png"):
        for name in ("claude-calls", "gpt-calls"):
            parts = [
                {"type": "image_url", "image_url": {"url": url, "detail": "auto"}},
                {"type": "text", "text": "What is this?"},
            ]
            messages = [{"role": "user", "content": parts}]
            (reply,) = replies_of(model_of(fake_provider, name), messages, tools=())
            assert reply.text == "Red."


FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": False},
}


@pytest.mark.parametrize("name", ["claude-calls", "gpt-calls"])
@pytest.mark.parametrize("response_format", [FORMAT, {"type": "json_object"}])
def test_a_form_is_asked_for(
    fake_provider: RunningProvider, name: str, response_format: dict[str, Any]
) -> None:
    mark = f" #{next(serial)}form"
    messages = [{"role": "user", "content": f"Hello{mark}"}]
    replies_of(model_of(fake_provider, name), messages, tools=(), response_format=response_format)
    (body,) = fake_provider.requests(mark)
    is_schema = response_format is FORMAT
    if name.startswith("gpt"):
        inner = {"name": "a", "schema": {"type": "object"}, "strict": False}
        assert body["text"]["format"] == {"type": response_format["type"]} | (
            inner if is_schema else {}
        )
    elif is_schema:
        wanted = {"type": "json_schema", "schema": {"type": "object"}}
        assert body["output_config"] == {"format": wanted}
    else:
        assert "JSON" in body["system"][-1]["text"]


@pytest.mark.parametrize(
    ("tool_choice", "sent"),
    [
        ("required", {"type": "any"}),
        ({"type": "function", "function": {"name": "clock"}}, {"type": "tool", "name": "clock"}),
        ("none", {"type": "none"}),
        ("auto", None),
    ],
)
def test_a_forced_call_is_made_without_thinking(
    fake_provider: RunningProvider, tool_choice: Any, sent: Any
) -> None:
    """The API refuses both at once, and thoughts that begin between a call and its answer."""
    mark = f" #{next(serial)}forced"
    messages = [{"role": "user", "content": f"Hello{mark}"}]
    model = model_of(fake_provider, "claude-thinks", forced=THINKING)
    replies_of(model, messages, tool_choice=tool_choice)
    bodies = fake_provider.requests(mark)
    assert bodies[0].get("tool_choice") == sent
    assert len(bodies) == (1 if tool_choice == "none" else 2)
    assert all(("thinking" in body) == (tool_choice in ("none", "auto")) for body in bodies)
