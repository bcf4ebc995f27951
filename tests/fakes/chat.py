"""One answer of the fake provider: what is said or called, how fast, and how it goes wrong.

No HTTP here: `tests.fakes.provider` sends what this makes.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from tests.fakes import answers, habits, obedience
from tests.fakes.behaviours import behaviour_of

Json = dict[str, Any]

TOKENS = int(os.environ.get("FAKE_TOKENS", "64"))
TTFT_MS = float(os.environ.get("FAKE_TTFT_MS", "0"))
ITL_MS = float(os.environ.get("FAKE_ITL_MS", "0"))
HANG_SECONDS = 3600
LEGACY_FINISH = {"tool_calls": "function_call"}


def now_us() -> int:
    return time.monotonic_ns() // 1000


class CutError(ConnectionAbortedError):
    """Leaves the body unfinished: uvicorn then closes the connection."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast an answer comes, and its length."""

    tokens: int
    first_seconds: float
    gap_seconds: float


class ChatAnswer:
    """The answer to one chat request: what is said, called, and how it goes wrong."""

    def __init__(self, body: bytes, serial: int) -> None:
        self.arrived_us = now_us()
        self.body = body
        self.serial = serial
        self.request: Json = orjson.loads(body)
        self.mark = answers.markers(body)
        self.model = str(self.request.get("model", "fake-model"))
        self.is_legacy = "functions" in self.request
        self.behaviour, self.strikes_once = behaviour_of(self.model)
        if "drop" in self.mark:
            self.behaviour = replace(self.behaviour, cut_after=int(self.mark["drop"]))
        self.pace = Pace(
            int(self.mark.get("tokens", TOKENS)),
            float(self.mark.get("ttft", self.behaviour.ttft_ms or TTFT_MS)) / 1e3,
            float(self.mark.get("itl", self.behaviour.itl_ms or ITL_MS)) / 1e3,
        )
        self.head: Json = {
            "id": f"chatcmpl-fake{serial}",
            "created": int(time.time()),
            "model": self.model,
        }

    @property
    def messages(self) -> list[Json]:
        return self.request.get("messages") or []

    def calls(self) -> list[answers.Call]:
        if self.behaviour.answer == "parallel":
            return answers.parallel_calls(self.request)
        if self.behaviour.answer == "endless":
            return answers.endless_calls(self.request)
        if self.behaviour.answer == "obedient":
            return obedience.obeyed_calls(self.request)
        return answers.wanted_calls(self.request, self.mark)

    def call_delta(self, calls: list[answers.Call]) -> Json:
        if self.is_legacy:
            name, arguments = calls[0]
            return {"content": None, "function_call": {"name": name, "arguments": arguments}}
        return {
            "content": None,
            "tool_calls": [
                {
                    "index": i,
                    "id": self.call_id(i),
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                    **self.signature(i),
                }
                for i, (name, arguments) in enumerate(calls)
            ],
        }

    def call_id(self, number: int) -> str:
        if self.behaviour.habit == "mistral":
            return f"m{self.serial:07}{number}"
        begin = habits.CALL_ID.get(self.behaviour.habit, "call_fake")
        return f"{begin}{self.serial}_{number}"

    def signature(self, number: int) -> Json:
        if self.behaviour.habit != "gemini" or number:
            return {}
        return {"extra_content": habits.signature(self.call_id(number))}

    def thought(self) -> str:
        is_thinking = self.behaviour.habit in ("deepseek", "mistral", "tags", "reasoning")
        return habits.thought(self.call_id(0)) if is_thinking else ""

    def thought_delta(self, text: str) -> Json:
        """A piece of a thought, or all of it; tags stand around it by themselves."""
        match self.behaviour.habit:
            case "mistral":
                return {
                    "content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]
                }
            case "tags":
                return {"content": text}
            case "reasoning":
                return {"content": None, "reasoning": text}
        return {"content": None, "reasoning_content": text}

    def pieces(self) -> list[str]:
        """The tokens of the text; a stamped answer is made while it is sent."""
        if self.behaviour.answer == "echo":
            return [orjson.dumps(self.messages).decode()]
        structured = answers.structured_text(self.request)
        if structured is not None:
            return [structured]
        given = answers.given_text(self.mark)
        if given is not None:
            return answers.cut(given)
        words = answers.answer_tokens(self.pace.tokens)
        if self.behaviour.answer == "parrot":
            return ["[Sent at ", "2024-01-01 ", "00:00:00]\n", *words]
        return words

    def stamp(self, i: int) -> str:
        return f"#{self.arrived_us};@{now_us()};" if i == 0 else f"@{now_us()};"

    def usage(self, tokens: int) -> Json:
        prompt = max(1, len(self.body) // 4)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "total_tokens": prompt + tokens,
            "prompt_tokens_details": {"cached_tokens": prompt // 2},
        }

    def event(self, delta: Json, finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._line({"choices": [choice]})

    def usage_event(self, tokens: int) -> bytes:
        return self._line({"choices": [], "usage": self.usage(tokens)})

    def _line(self, fields: Json) -> bytes:
        chunk = self.head | {"object": "chat.completion.chunk"} | fields
        return b"data: " + orjson.dumps(chunk) + b"\n\n"

    def finish_reason(self, called: bool) -> str | None:
        if not called:
            return self.behaviour.finish_reason
        return LEGACY_FINISH["tool_calls"] if self.is_legacy else "tool_calls"

    def whole(self) -> Json:
        """The answer as one JSON object."""
        calls = self.calls()
        if calls:
            message = self.call_delta(calls)
        elif self.mark.get("stamp") == "1":
            message = {"content": self.stamp(0)}
        else:
            message = {"content": "".join(self.pieces())}
        if self.thought():
            message = self._with_thought(message)
        choice = {
            "index": 0,
            "message": {"role": "assistant", **message},
            "finish_reason": self.finish_reason(bool(calls)),
        }
        usage = self.usage(self.pace.tokens)
        return self.head | {"object": "chat.completion", "choices": [choice], "usage": usage}

    def _with_thought(self, message: Json) -> Json:
        if self.behaviour.habit == "tags":
            return {"content": f"<think>{self.thought()}</think>\n{message['content'] or ''}"} | {
                name: value for name, value in message.items() if name != "content"
            }
        thought = self.thought_delta(self.thought())
        if self.behaviour.habit == "mistral" and message["content"]:
            thought["content"].append({"type": "text", "text": message["content"]})
        return message | {name: value for name, value in thought.items() if value is not None}

    async def stream(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """(tokens in it, bytes to send), at their pace. Raises CutError."""
        sent = 0
        async for chunk in self._paced_tokens():
            await self._strike(sent)
            if sent == self.behaviour.raw_after:
                yield 0, self.behaviour.raw
                return
            yield 1, chunk
            sent += 1
        if self.behaviour.finish_reason is None:
            return
        tail = self.event({}, self.finish_reason(bool(self.calls())))
        if (self.request.get("stream_options") or {}).get("include_usage"):
            tail += self.usage_event(sent)
        yield 0, tail + (b"data: [DONE]\n\n" if self.behaviour.has_done else b"")

    async def _strike(self, sent: int) -> None:
        if sent == self.behaviour.hang_after:
            await asyncio.sleep(HANG_SECONDS)
        if sent == self.behaviour.cut_after:
            raise CutError("asked to cut")

    async def _paced_tokens(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        await asyncio.sleep(self.pace.first_seconds)
        calls = self.calls()
        thought = self.thought()
        if thought and self.behaviour.habit == "tags":
            thought = f"<think>\n{thought}\n</think>\n\n"
        for word in thought.partition(" "):
            if word:
                yield self.event(self.thought_delta(word))
        if calls:
            yield self.event({"role": "assistant", **self.call_delta(calls)})
            return
        is_stamped = self.mark.get("stamp") == "1"
        events: dict[str, bytes] = {}  # by text: a flood shall not pay for JSON
        for i, text in enumerate(self.pieces()):
            if i:
                due = start + self.pace.first_seconds + self.pace.gap_seconds * i
                await asyncio.sleep(max(0.0, due - loop.time()))
            if is_stamped:
                yield self.event({"content": self.stamp(i)})
            elif i == 0:
                yield self.event({"role": "assistant", "content": text})
            else:
                yield events.get(text) or events.setdefault(text, self.event({"content": text}))
