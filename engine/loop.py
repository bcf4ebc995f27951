"""Run one assistant turn: ask the model, run what it calls, ask again.

`run` yields loop events as they happen and does no input or output itself: the model and the tools
come as arguments, and whoever consumes it stores each `Reply` before asking for more, so that a
tool is never called before its call is a row. It may be closed or cancelled at any point; tools
and the upstream socket are let go at once.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from engine.history.neighbours import merge_neighbours
from engine.history.normaliser import produced_message
from engine.history.prompt import is_empty, mark_untrusted
from engine.history.sent_at import SentAtStripper
from engine.loop_events import (
    ApprovalNeeded,
    CallFinished,
    CallStarted,
    ClientCallsReturned,
    LoopEvent,
    Reasoning,
    ReasoningTakenBack,
    Reply,
    Text,
)
from engine.messages import AssistantMessage, ProviderMessage
from engine.provider.model import (
    CallChunk,
    Model,
    ModelProfile,
    ModelRequest,
    ReasoningChunk,
    ReplyEnd,
    TextChunk,
)
from engine.provider.reply import BegunAgain, OnAnswer, OnRetry, RetryPolicy, reply
from engine.provider_fields import is_calling, with_fields
from engine.tool_calls import ToolCall, chat_form
from engine.tools import Toolbox, ToolChoice, ToolResult
from engine.trust import NOTHING_READ, Exposure


async def run(
    model: Model,
    request: ModelRequest,
    *,
    toolbox: Toolbox,
    retry_policy: RetryPolicy,
    max_tool_rounds: int,
    first_step: int = 1,
    on_retry: OnRetry | None = None,
    on_answer: OnAnswer | None = None,
    exposure: Exposure = NOTHING_READ,
    mark: str = "",
    is_outdated: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[LoopEvent, None]:
    """Run steps, each one request, until the model answers without a call, a call must wait for a
    person, or a call is the client's to run.

    `request.messages` hold everything up to `first_step`. After `max_tool_rounds` rounds one last
    request goes out without tools. A call that `request.tool_choice` forces is forced once.
    `exposure` is what the turn has read so far (`engine.trust`); results stand between marks made of
    `mark`. `is_outdated` is asked after each round: if so, the rest is left to a new run with a new request.
    Raises ProviderError.
    """
    messages = list(request.messages)
    for step in itertools.count(first_step):
        tools = request.tools if step <= max_tool_rounds else ()
        # Not `first_step`: a turn that goes on after a break was forced in its step 1.
        choice = request.tool_choice if step == 1 else _relax_choice(request.tool_choice)
        asked = replace(request, messages=messages, tools=tools, tool_choice=choice)
        whole: Reply | None = None
        async with aclosing(
            _one_reply(model, asked, step, retry_policy, on_retry, on_answer)
        ) as parts:
            async for part in parts:
                if isinstance(part, Reply):
                    part = whole = _with_unapproved(part, toolbox, exposure)
                yield part
        assert whole is not None, "a reply always ends"
        if not whole.calls:
            return
        results: dict[ToolCall, ToolResult] = {}
        client_tools = tuple(call for call in whole.calls if toolbox.is_client_tool(call.name))
        free = [call for call in whole.calls if call not in (*whole.unapproved, *client_tools)]
        async with aclosing(run_calls(free, exposure, step=step, toolbox=toolbox)) as loop_events:
            async for loop_event in loop_events:
                if isinstance(loop_event, CallFinished):
                    results[loop_event.call] = loop_event.result
                yield loop_event
        # Before the client's calls: the turn then comes back to those once a person has decided.
        if whole.unapproved:
            yield ApprovalNeeded(step, whole.unapproved)
            return
        if client_tools:
            yield ClientCallsReturned(step, client_tools, whole.finish_reason)
            return
        if is_outdated():
            return
        exposure = _read_results(exposure, results)
        added = _round(whole, results, model.profile, mark)
        messages = _extend_messages(messages, added, model.profile)


async def run_calls(
    calls: Sequence[ToolCall], exposure: Exposure, *, step: int, toolbox: Toolbox
) -> AsyncGenerator[CallStarted | CallFinished, None]:
    """Run all calls of one reply at once, and yield results as they are ready."""
    for call in calls:
        yield CallStarted(step, call)
    running = [asyncio.create_task(_call(call, exposure, step, toolbox)) for call in calls]
    try:
        for finished in asyncio.as_completed(running):
            yield await finished
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _call(call: ToolCall, exposure: Exposure, step: int, toolbox: Toolbox) -> CallFinished:
    return CallFinished(step, call, await toolbox.call(call, exposure))


async def _one_reply(
    model: Model,
    request: ModelRequest,
    step: int,
    retry_policy: RetryPolicy,
    on_retry: OnRetry | None,
    on_answer: OnAnswer | None,
) -> AsyncGenerator[Text | Reasoning | ReasoningTakenBack | Reply, None]:
    """Yield text and reasoning as they come, then the Reply.

    Drops calls of tools that were not offered, and fields that the provider sent with an answer in
    an exchange without calls: it will not want them back.
    """
    started = time.monotonic()
    stripper = SentAtStripper()
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    first_token_seconds: float | None = None
    end = ReplyEnd(finish_reason="stop")
    async with aclosing(
        reply(model, request, retry_policy=retry_policy, on_retry=on_retry, on_answer=on_answer)
    ) as parts:
        async for part in parts:
            match part:
                case TextChunk(text=text):
                    if first_token_seconds is None:
                        first_token_seconds = time.monotonic() - started
                    if shown := stripper.feed(text):
                        texts.append(shown)
                        yield Text(step, shown)
                case ReasoningChunk(text=text):
                    thoughts.append(text)
                    yield Reasoning(step, text)
                case BegunAgain():
                    thoughts.clear()
                    yield ReasoningTakenBack(step)
                case CallChunk(call=call):
                    calls.append(replace(call, reply_id=f"step-{step}"))
                case ReplyEnd():
                    end = part
    if rest := stripper.flush():
        texts.append(rest)
        yield Text(step, rest)
    yield Reply(
        step=step,
        text="".join(texts),
        calls=tuple(calls) if request.tools else (),
        finish_reason=end.finish_reason,
        usage=end.usage,
        first_token_seconds=first_token_seconds,
        seconds=time.monotonic() - started,
        provider_fields=end.provider_fields if calls or is_calling(request.messages) else {},
        reasoning="".join(thoughts),
    )


def _relax_choice(choice: ToolChoice | None) -> ToolChoice | None:
    return choice if choice in ("none", "auto") else None


def _with_unapproved(whole: Reply, toolbox: Toolbox, exposure: Exposure) -> Reply:
    unapproved = tuple(call for call in whole.calls if toolbox.asks_first(call, exposure))
    return replace(whole, unapproved=unapproved)


def _read_results(exposure: Exposure, results: Mapping[ToolCall, ToolResult]) -> Exposure:
    """Return what the turn has read now. It must be what `engine.trust` makes of the stored rows."""
    for call, result in results.items():
        exposure = exposure.after(call.name, result.content, has_files=bool(result.produced))
    return exposure


def _extend_messages(
    messages: list[ProviderMessage], more: list[ProviderMessage], profile: ModelProfile
) -> list[ProviderMessage]:
    """Append a round; the prompt of a model that wants it last stays last."""
    end = len(messages)
    while profile.system_position == "last" and end and messages[end - 1]["role"] == "system":
        end -= 1
    return [*messages[:end], *more, *messages[end:]]


def _round(
    whole: Reply, results: Mapping[ToolCall, ToolResult], profile: ModelProfile, mark: str
) -> list[ProviderMessage]:
    """Return the calling message, its results in call order, and the files they made as they came.

    These must be the messages that `engine.history.normaliser` makes of the stored rows.
    """
    calling: AssistantMessage = {
        "role": "assistant",
        "content": "" if is_empty(whole.text) else whole.text,
        "tool_calls": [chat_form(call) for call in whole.calls],
    }
    answers: list[ProviderMessage] = [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": mark_untrusted(results[call].content, mark),
        }
        for call in whole.calls
    ]
    produced = [
        produced_message(file.attachment, vision=profile.vision, mark=mark)
        for result in results.values()
        for file in result.produced
    ]
    asked = with_fields(calling, whole.provider_fields)
    return [asked, *answers, *merge_neighbours(produced)]
