"""Runs the loop with a scripted model and a toolbox of one coroutine."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from engine import loop
from engine.loop_events import LoopEvent, Reply
from engine.messages import UserMessage
from engine.provider.model import ModelRequest
from engine.provider.reply import RetryPolicy
from engine.tests.scripted_model import ScriptedModel, forever
from engine.tool_calls import ToolCall
from engine.tools import ToolResult, ToolSpec
from engine.trust import Exposure

RETRY_POLICY = RetryPolicy(first_token_seconds=10, idle_seconds=10, backoff_seconds=0)
ASKED: UserMessage = {"role": "user", "content": "Which time is it?"}


@dataclass
class Tools:
    """A toolbox of one coroutine."""

    work: Callable[[str], Awaitable[str]]
    names: Sequence[str] = ("clock",)
    asking: Sequence[str] = ()
    client_tools: Sequence[str] = ()
    called: list[tuple[str, str, str]] = field(default_factory=list)
    exposures: list[Exposure] = field(default_factory=list)
    let_go: int = 0

    @property
    def specs(self) -> list[ToolSpec]:
        return [ToolSpec(name, "") for name in self.names]

    def is_safe_to_repeat(self, name: str) -> bool:
        return True

    def asks_first(self, call: ToolCall, exposure: Exposure) -> bool:
        return call.name in self.asking

    def is_client_tool(self, name: str) -> bool:
        return name in self.client_tools

    async def call(self, call: ToolCall, exposure: Exposure) -> ToolResult:
        self.called.append((call.id, call.name, call.arguments))
        self.exposures.append(exposure)
        try:
            return ToolResult(call.id, True, await self.work(call.id))
        finally:
            self.let_go += 1


async def at_once(call_id: str) -> str:
    return f"result of {call_id}"


async def never(call_id: str) -> str:
    await forever()
    return ""


OPTIONS: Any = {"retry_policy": RETRY_POLICY, "max_tool_rounds": 5}


async def consume(parts: Any) -> list[LoopEvent]:
    async with asyncio.timeout(20), aclosing(parts):
        return [part async for part in parts]


def loop_events(model: ScriptedModel, toolbox: Any = None, **options: Any) -> Any:
    toolbox = toolbox or Tools(at_once, names=())
    request = ModelRequest([ASKED], tools=tuple(toolbox.specs), temperature=0.5)
    return loop.run(model, request, toolbox=toolbox, **{**OPTIONS, **options})


def run(model: ScriptedModel, toolbox: Any = None, **options: Any) -> list[LoopEvent]:
    return asyncio.run(consume(loop_events(model, toolbox, **options)))


def kinds(seen: Sequence[LoopEvent]) -> list[tuple[str, int]]:
    return [(type(loop_event).__name__, loop_event.step) for loop_event in seen]


def replies(seen: Sequence[LoopEvent]) -> list[Reply]:
    return [loop_event for loop_event in seen if isinstance(loop_event, Reply)]
