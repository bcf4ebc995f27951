"""A model that plays a script, and fails on a request nobody wrote and on a line nobody asked for."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.provider.model import (
    CallChunk,
    ModelProfile,
    ModelRequest,
    ReplyEnd,
    ReplyPart,
    TextChunk,
    Usage,
)
from engine.tool_calls import ToolCall

Line = ReplyPart | Exception | Callable[[], Any]
"""What one step says: parts, an error to raise, or something to await in between."""


def says(*texts: str, usage: Usage | None = None, finish_reason: str = "stop") -> list[Line]:
    return [*map(TextChunk, texts), ReplyEnd(finish_reason, usage)]


def calls(*called: ToolCall, text: str = "", usage: Usage | None = None) -> list[Line]:
    said: list[Line] = [TextChunk(text)] if text else []
    return [*said, *map(CallChunk, called), ReplyEnd("tool_calls", usage)]


def call(name: str = "clock", *, id: str = "c1", arguments: str = "{}") -> ToolCall:
    return ToolCall(id, name, arguments)


async def forever() -> None:
    await asyncio.Event().wait()


@dataclass
class ScriptedModel:
    """`with ScriptedModel([…], […]) as model`: one list per request, all of them to be used."""

    script: Sequence[Sequence[Line]]
    profile: ModelProfile = field(default_factory=lambda: ModelProfile("scripted"))
    requests: list[ModelRequest] = field(default_factory=list)
    closed: int = 0
    """How many of the streams were closed or finished."""

    def __enter__(self) -> "ScriptedModel":
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is None:
            left = len(self.script) - len(self.requests)
            assert not left, f"{left} step(s) of the script were never asked for"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyPart, None]:
        self.requests.append(request)
        step = len(self.requests)
        assert step <= len(self.script), f"request {step} is not in the script"
        try:
            for line in self.script[step - 1]:
                if isinstance(line, Exception):
                    raise line
                if callable(line):
                    await line()
                else:
                    yield line
        finally:
            self.closed += 1
