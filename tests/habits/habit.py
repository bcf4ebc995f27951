"""What a habit of a real server is, and how the fake provider plays it.

A model of the fake provider that is named as a habit answers by the habit's `play`: pure, so that tests
know what to expect.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.fakes import answers

Json = dict[str, Any]

ANSWER = "Amber is fossil resin 🌲, and older than words."
PIECES = ("Amber ", "is fossil", " resin 🌲", ", and older ", "than words.")
PROMPT_TOKENS, COMPLETION_TOKENS = 321, 12
USAGE: Json = {
    "prompt_tokens": PROMPT_TOKENS,
    "completion_tokens": COMPLETION_TOKENS,
    "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
}
ARGUMENTS: Mapping[str, Json] = {
    "weather": {"city": "Ulm"},
    "clock": {"city": "Oslo"},
    "calculate": {"expression": "6*7"},
    "current_time": {},
}
"""The tools that are called: a client's, and two of Amber's own."""

EVENT_STREAM = b"text/event-stream; charset=utf-8"
JSON_TYPE = b"application/json"


@dataclass(frozen=True, slots=True)
class Played:
    """An answer: its body in the pieces in which it is sent."""

    pieces: Sequence[bytes]
    status: int = 200
    content_type: bytes = EVENT_STREAM
    headers: tuple[tuple[bytes, bytes], ...] = ()
    is_cut: bool = False
    """Whether the connection is cut after the last piece."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to a model with a habit."""

    request: Json
    serial: int

    @property
    def messages(self) -> list[Json]:
        return self.request.get("messages") or []

    @property
    def has_results(self) -> bool:
        return answers.results_at_end(self.messages) > 0

    def calls(self) -> list[tuple[str, Json]]:
        """The tools to call now: two of those that are offered, or none once they are answered."""
        if self.has_results:
            return []
        offered = answers.offered_tools(self.request)
        return [(name, values) for name, values in ARGUMENTS.items() if name in offered][:2]


@dataclass(frozen=True, slots=True)
class Expected:
    """What people and programs are to get. `finish_reason` as Amber stores it; `code` of the error,
    "" for none; `said` are words of the provider that only the log holds. `message` is part of what is
    said to who asked."""

    text: str = ANSWER
    finish_reason: str | None = "stop"
    code: str = ""
    message: str = ""
    said: str = ""
    calls: int = 0
    """How many tools are called first."""
    counted: bool | None = True
    """Whether the provider's count is used; None: whichever."""
    reasoning: str = ""

    @property
    def status(self) -> str:
        if not self.code:
            return "completed"
        return "incomplete" if self.text else "failed"


@dataclass(frozen=True, slots=True)
class Habit:
    """A model's name at the fake provider, whose habit it is, what it does (for the page), the answer,
    and what comes of it. `row` are fields of the model's row other than the usual. `comes_after`:
    the conversation was begun by another model, which called tools. Those with an `upstream` id have a
    server of their own, which plays by itself and is told by a marker what to call."""

    name: str
    servers: str
    does: str
    play: Callable[[Exchange], Played] | None = None
    expected: Expected = field(default_factory=Expected)
    row: Mapping[str, Any] = field(default_factory=dict)
    comes_after: bool = False
    upstream: str = ""


# -- Parts of answers --------------------------------------------------------------------------------


def chunk(delta: Json | None = None, finish_reason: str | None = None, **more: Any) -> Json:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish_reason, **more}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def texts(pieces: Iterable[str] = PIECES) -> list[Json]:
    return [chunk({"role": "assistant", "content": ""}), *(chunk({"content": p}) for p in pieces)]


def counted(**more: Any) -> Json:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "choices": [],
        "usage": USAGE | more,
    }


def answer(finish_reason: str = "stop") -> list[Json]:
    """A whole answer as OpenAI sends it."""
    return [*texts(), chunk({}, finish_reason), counted()]


def event(value: Json) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def written(values: Json) -> str:
    return orjson.dumps(values).decode()


DONE = b"data: [DONE]\n\n"


def streamed(events: Iterable[Json], *, done: bool = True, **more: Any) -> Played:
    pieces = [event(each) for each in events]
    return Played([*pieces, DONE] if done else pieces, **more)


def whole(message: Json, finish_reason: str = "stop", **more: Any) -> Json:
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": finish_reason,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [choice],
        "usage": USAGE,
        **more,
    }


def refused(status: int, body: Any, *headers: tuple[bytes, bytes], html: bool = False) -> Played:
    written = body if isinstance(body, bytes) else orjson.dumps(body)
    return Played([written], status, b"text/html" if html else JSON_TYPE, headers)


def says(*pieces: bytes, **more: Any) -> Callable[[Exchange], Played]:
    return lambda _: Played(pieces, **more)


def sends(events: Sequence[Json], **more: Any) -> Callable[[Exchange], Played]:
    return lambda _: streamed(events, **more)


def refuses(status: int, body: Any, **more: Any) -> Callable[[Exchange], Played]:
    return lambda _: refused(status, body, **more)
