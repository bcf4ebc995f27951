"""Every row of the fault table (docs/architecture.md, "Providers"), against a real server."""

import asyncio
import gc
import itertools
import socket
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from engine.messages import ProviderMessage
from engine.provider.client import Endpoint, close_clients, preload, shared_client
from engine.provider.model import (
    CallChunk,
    ModelProfile,
    ModelRequest,
    ProviderError,
    ReplyEnd,
    TextChunk,
)
from engine.provider.openai_model import OpenAIModel
from engine.provider.reply import RetryPolicy, reply
from engine.tool_calls import ToolCall, chat_form
from engine.tools import ToolSpec
from tests.fakes.answers import PARROTED_TIME, answer_text
from tests.fixtures.provider import RunningProvider

PATIENT = RetryPolicy(first_token_seconds=60, idle_seconds=60, backoff_seconds=0.01)
"""On a machine however busy, only who is silent is late."""
FOR_THE_SILENT = {
    "fake-hang-first": replace(PATIENT, first_token_seconds=0.4),
    "fake-hang-first-once": replace(PATIENT, first_token_seconds=5),
    "fake-hang-mid": replace(PATIENT, idle_seconds=0.4),
}
TOKENS = 6
SHOWN = answer_text(3)
"""What comes in front of a fault that strikes midway."""
WHOLE = answer_text(TOKENS)
TOOLS = (
    ToolSpec("weather", "Tells the weather.", {"type": "object"}),
    ToolSpec("clock", "Tells the time.", {"type": "object"}),
)

serial = itertools.count()


@pytest.fixture(autouse=True, scope="module")
def client_is_imported() -> None:
    """Half a second that would count against the first deadline."""
    preload()


@dataclass
class Outcome:
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    end: ReplyEnd | None = None
    error: ProviderError | None = None
    retried: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        if self.error is None:
            return "completed"
        return "incomplete" if self.text else "failed"


def question(**marks: Any) -> list[ProviderMessage]:
    """A question nobody asked before, for an answer of TOKENS tokens."""
    marker = " ".join(f"{key}={value}" for key, value in ({"tokens": TOKENS} | marks).items())
    return [{"role": "user", "content": f"Question {next(serial)}? [[fake {marker}]]"}]


def model_of(provider: RunningProvider, name: str, **profile: Any) -> OpenAIModel:
    return OpenAIModel(ModelProfile(name, **profile), Endpoint(provider.base_url, provider.api_key))


async def outcome_of(
    model: OpenAIModel,
    messages: Sequence[ProviderMessage] | None = None,
    *,
    retry_policy: RetryPolicy = PATIENT,
    **request: Any,
) -> Outcome:
    seen = Outcome()
    asked = ModelRequest(messages or question(), **request)
    parts = reply(
        model,
        asked,
        retry_policy=retry_policy,
        on_retry=lambda error, _: seen.retried.append(error.code),
    )
    try:
        async with aclosing(parts):
            async for part in parts:
                match part:
                    case TextChunk(text):
                        assert text
                        seen.text += text
                    case CallChunk(call):
                        seen.calls.append(call)
                    case ReplyEnd():
                        seen.end = part
    except ProviderError as error:
        seen.error = error
    return seen


FAULTS = [
    # model, status, code, text, retries
    ("fake-429", "failed", "provider_rate_limited", "", 2),
    ("fake-500", "failed", "provider_unavailable", "", 2),
    ("fake-503", "failed", "provider_unavailable", "", 2),
    ("fake-cut-first", "failed", "provider_unavailable", "", 2),
    ("fake-hang-first", "failed", "provider_timeout", "", 2),
    ("fake-error-event", "failed", "provider_unavailable", "", 2),
    ("fake-malformed-first", "failed", "provider_malformed", "", 2),
    ("fake-wrong-shape", "failed", "provider_malformed", "", 2),
    ("fake-no-finish-first", "failed", "provider_lost", "", 2),
    ("fake-cut-mid", "incomplete", "provider_lost", SHOWN, 0),
    ("fake-hang-mid", "incomplete", "provider_timeout", SHOWN, 0),
    ("fake-error-event-mid", "incomplete", "provider_lost", SHOWN, 0),
    ("fake-malformed-mid", "incomplete", "provider_malformed", SHOWN, 0),
    ("fake-wrong-shape-mid", "incomplete", "provider_malformed", SHOWN, 0),
    ("fake-no-finish", "incomplete", "provider_lost", WHOLE, 0),
    ("fake-400", "failed", "provider_rejected", "", 0),
    ("fake-401", "failed", "provider_auth", "", 0),
    ("fake-403", "failed", "provider_auth", "", 0),
    ("fake-404", "failed", "provider_rejected", "", 0),
    ("fake-context-too-long", "failed", "context_too_long", "", 0),
]


@pytest.mark.parametrize(("name", "status", "code", "text", "retries"), FAULTS)
def test_a_fault_becomes_its_code(
    fake_provider: RunningProvider, name: str, status: str, code: str, text: str, retries: int
) -> None:
    retry_policy = FOR_THE_SILENT.get(name, PATIENT)
    seen = asyncio.run(outcome_of(model_of(fake_provider, name), retry_policy=retry_policy))

    assert seen.error is not None
    assert (seen.status, seen.error.code, seen.text) == (status, code, text)
    assert seen.retried == [code] * retries
    assert seen.error.retryable == (
        code not in ("provider_rejected", "provider_auth", "context_too_long")
    )


@pytest.mark.parametrize(
    ("name", "finish_reason", "text"),
    [
        ("fake-model", "stop", WHOLE),
        ("fake-length", "length", WHOLE),
        ("fake-filter", "content_filter", WHOLE),
        ("fake-no-done", "stop", WHOLE),
        ("fake-json", "stop", WHOLE),
        ("fake-parrot", "stop", PARROTED_TIME + WHOLE),
        ("fake-no-stream-options", "stop", WHOLE),
        ("fake-no-max-tokens", "stop", WHOLE),
    ],
)
def test_a_reply_completes(
    fake_provider: RunningProvider, name: str, finish_reason: str, text: str
) -> None:
    seen = asyncio.run(outcome_of(model_of(fake_provider, name), max_output_tokens=50))

    assert seen.status == "completed"
    assert seen.text == text
    assert seen.end is not None
    assert seen.end.finish_reason == finish_reason
    assert seen.retried == []


@pytest.mark.parametrize(
    "fault",
    [
        *("fake-429", "fake-500", "fake-cut-first", "fake-hang-first", "fake-malformed-first"),
        *("fake-error-event", "fake-no-finish-first"),
    ],
)
def test_a_passing_fault_is_not_noticed(fake_provider: RunningProvider, fault: str) -> None:
    name = f"{fault}-once"
    retry_policy = FOR_THE_SILENT.get(name, PATIENT)
    seen = asyncio.run(outcome_of(model_of(fake_provider, name), retry_policy=retry_policy))

    assert (seen.status, seen.text, len(seen.retried)) == ("completed", WHOLE, 1)


def test_usage_is_the_providers(fake_provider: RunningProvider) -> None:
    seen = asyncio.run(outcome_of(model_of(fake_provider, "fake-model")))

    assert seen.end is not None
    assert seen.end.usage is not None
    assert seen.end.usage.completion_tokens == TOKENS
    assert seen.end.usage.cached_tokens == seen.end.usage.prompt_tokens // 2 > 0


def test_fields_that_a_model_does_not_know_are_sent_once(fake_provider: RunningProvider) -> None:
    messages = question()
    for _ in range(2):
        seen = asyncio.run(
            outcome_of(model_of(fake_provider, "fake-no-max-tokens"), messages, max_output_tokens=7)
        )
        assert seen.status == "completed"
    bodies = fake_provider.requests(contains=str(messages[0]["content"]))
    assert "max_tokens" not in bodies[-1]
    assert bodies[-1]["max_completion_tokens"] == 7


def test_a_refused_connection_is_retried_and_unavailable() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = RunningProvider(f"http://127.0.0.1:{closed.getsockname()[1]}/v1")
        seen = asyncio.run(outcome_of(model_of(nobody, "fake-model")))

    assert seen.error is not None
    assert (seen.status, seen.error.code) == ("failed", "provider_unavailable")
    assert len(seen.retried) == 2


def test_retry_after_is_heeded(fake_provider: RunningProvider) -> None:
    started = time.monotonic()
    seen = asyncio.run(outcome_of(model_of(fake_provider, "fake-429-retry-after-once")))

    assert seen.text == WHOLE
    assert time.monotonic() - started >= 1


def test_no_retry_starts_that_would_end_past_the_deadline(fake_provider: RunningProvider) -> None:
    async def work() -> Outcome:
        retry_policy = replace(PATIENT, deadline=asyncio.get_running_loop().time() + 0.5)
        return await outcome_of(
            model_of(fake_provider, "fake-429-retry-after"), retry_policy=retry_policy
        )

    seen = asyncio.run(work())
    assert seen.error is not None
    assert (seen.error.code, seen.retried) == ("provider_rate_limited", [])


def test_the_turns_deadline_ends_a_reply_that_still_flows(fake_provider: RunningProvider) -> None:
    async def work() -> Outcome:
        retry_policy = replace(PATIENT, deadline=asyncio.get_running_loop().time() + 3)
        model = model_of(fake_provider, "fake-model")
        return await outcome_of(model, question(tokens=10_000, itl=20), retry_policy=retry_policy)

    seen = asyncio.run(work())
    assert seen.error is not None
    assert (seen.status, seen.error.code) == ("incomplete", "provider_timeout")


def test_a_slow_consumer_is_no_silence(fake_provider: RunningProvider) -> None:
    async def work() -> str:
        text = ""
        request = ModelRequest(question())
        retry_policy = FOR_THE_SILENT["fake-hang-mid"]
        parts = reply(model_of(fake_provider, "fake-model"), request, retry_policy=retry_policy)
        async for part in parts:
            await asyncio.sleep(retry_policy.idle_seconds * 0.6)
            text += part.text if isinstance(part, TextChunk) else ""
        return text

    assert asyncio.run(work()) == WHOLE


async def until_active(provider: RunningProvider, streams: int) -> bool:
    """Whether the provider has so many streams open, within a second."""
    for _ in range(50):
        if (await asyncio.to_thread(provider.stats))["active"] == streams:
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.mark.parametrize("name", ["fake-hang-first", "fake-hang-mid"])
def test_cancelling_closes_the_socket_though_the_provider_is_silent(
    fake_provider: RunningProvider, name: str
) -> None:
    async def work() -> None:
        before = await asyncio.to_thread(fake_provider.stats)
        task = asyncio.create_task(
            outcome_of(model_of(fake_provider, name), retry_policy=RetryPolicy())
        )
        assert await until_active(fake_provider, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await until_active(fake_provider, 0)
        after = await asyncio.to_thread(fake_provider.stats)
        assert after["aborted"] == before["aborted"] + 1

    asyncio.run(work())


def test_closing_the_generator_closes_the_socket(fake_provider: RunningProvider) -> None:
    async def work() -> None:
        request = ModelRequest(question(tokens=10_000, itl=20))
        parts = reply(model_of(fake_provider, "fake-model"), request)
        first = await anext(parts)  # a busy reader may find more than one chunk
        assert isinstance(first, TextChunk)
        assert first.text.startswith(answer_text(1))
        await parts.aclose()
        assert await until_active(fake_provider, 0)

    asyncio.run(work())


def test_a_finished_reply_leaves_its_connection_for_the_next(
    fake_provider: RunningProvider,
) -> None:
    async def work() -> None:
        model = model_of(fake_provider, "fake-model")
        for _ in range(3):
            assert (await outcome_of(model)).status == "completed"
        client = await shared_client(Endpoint(fake_provider.base_url, fake_provider.api_key))
        connector = client._transport.client.connector  # type: ignore[attr-defined]
        assert sum(map(len, connector._conns.values())) == 1

    asyncio.run(work())


def test_more_replies_at_once_than_a_usual_pool_has_connections(
    fake_provider: RunningProvider,
) -> None:
    async def work() -> None:
        client = await shared_client(Endpoint(fake_provider.base_url, fake_provider.api_key))
        model = model_of(fake_provider, "fake-model")
        assert (await outcome_of(model)).status == "completed"
        connector = client._transport.client.connector  # type: ignore[attr-defined]
        assert connector.limit == 0, "none"

    asyncio.run(work())


def test_clients_can_be_closed_and_are_made_again(fake_provider: RunningProvider) -> None:
    async def work() -> None:
        model = model_of(fake_provider, "fake-model")
        for _ in range(3):
            assert (await outcome_of(model)).status == "completed"
            gc.collect()
            await asyncio.sleep(0)
            client = await shared_client(Endpoint(fake_provider.base_url, fake_provider.api_key))
            assert not client.is_closed
            await close_clients()
            assert client.is_closed

    asyncio.run(work())


def results_for(calls: Sequence[ToolCall]) -> list[ProviderMessage]:
    """The reply that asked for these calls, and what they returned."""
    results: list[ProviderMessage] = [
        {"role": "tool", "tool_call_id": c.id, "content": f"{c.name} says {i}"}
        for i, c in enumerate(calls)
    ]
    return [
        {"role": "assistant", "content": None, "tool_calls": [*map(chat_form, calls)]},
        *results,
    ]


@pytest.mark.parametrize(
    ("dialect", "replies"),
    [
        ("tools", [["weather", "clock"]]),
        ("functions", [["weather"], ["clock"]]),
        ("chatglm3", [["weather"], ["clock"]]),
    ],
)
def test_two_calls_then_the_answer_in_each_dialect(
    fake_provider: RunningProvider, dialect: str, replies: list[list[str]]
) -> None:
    async def work() -> None:
        model = model_of(fake_provider, "fake-parallel-tools", tool_dialect=dialect)
        messages = question()
        for names in replies:
            seen = await outcome_of(model, messages, tools=TOOLS)
            assert [call.name for call in seen.calls] == names
            assert [call.arguments for call in seen.calls] == ["{}"] * len(names)
            assert seen.end is not None
            assert seen.end.finish_reason == "tool_calls"
            messages += results_for(seen.calls)
        seen = await outcome_of(model, messages, tools=TOOLS)
        assert (seen.text, seen.calls, seen.status) == (WHOLE, [], "completed")

    asyncio.run(work())


def test_many_replies_at_once_are_all_whole(fake_provider: RunningProvider) -> None:
    async def work() -> list[Outcome]:
        model = model_of(fake_provider, "fake-model")
        patient = RetryPolicy()
        return await asyncio.gather(*(outcome_of(model, retry_policy=patient) for _ in range(150)))

    assert {seen.text for seen in asyncio.run(work())} == {WHOLE}


def test_several_requests_learn_at_once_what_is_refused(fake_provider: RunningProvider) -> None:
    async def work() -> list[Outcome]:
        model = model_of(fake_provider, "habit-no-stop")
        asked = (outcome_of(model, stop=("x",), retry_policy=RetryPolicy()) for _ in range(8))
        return await asyncio.gather(*asked)

    assert {seen.status for seen in asyncio.run(work())} == {"completed"}
