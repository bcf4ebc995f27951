"""How models think aloud, and what they want back with a conversation, or refuse in it."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from tests.fakes import habits
from tests.habits.habit import (
    ANSWER,
    PIECES,
    Exchange,
    Expected,
    Habit,
    Json,
    Played,
    answer,
    chunk,
    counted,
    refused,
    sends,
    streamed,
    texts,
    written,
)

THOUGHT: Final = "Resin hardens. So it does."
_PARTS: Final = ("Resin ", "hardens. ", "So it does.")
_THINKS: Final = Expected(reasoning=THOUGHT)
_END: Final = answer()[-2:]
_DETAIL: Final = {"type": "reasoning.encrypted", "data": "sealed", "format": "x", "index": 1}
_SHORT_ID: Final = re.compile(r"[a-zA-Z0-9]{9}")


def _in_field(name: str) -> list[Json]:
    return [*(chunk({"content": None, name: part}) for part in _PARTS), *texts(), *_END]


def _in_tags(tag: str) -> list[Json]:
    whole = f"<{tag}>\n{THOUGHT}\n</{tag}>\n\n{ANSWER}"
    return [*texts(whole[i : i + 3] for i in range(0, len(whole), 3)), *_END]


def _in_parts() -> list[Json]:
    thoughts = (
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": part}]}]})
        for part in _PARTS
    )
    said = (chunk({"content": [{"type": "text", "text": piece}]}) for piece in PIECES)
    return [*thoughts, *said, *_END]


def _of_gemini() -> list[Json]:
    flag = {"google": {"thought": True}}
    thoughts = (chunk({"content": part, "extra_content": flag}) for part in _PARTS)
    return [*thoughts, *texts(), *_END]


def _wants(
    find_fault: Callable[[Exchange], str],
    head: Callable[[str], Json] = lambda _: {},
    call_fields: Callable[[str], Json] = lambda _: {},
    call_id: str = "call_wants{0}",
) -> Callable[[Exchange], Played]:
    """Refuses what `find_fault` finds; else calls two tools, with fields of its own, then answers."""

    def play(x: Exchange) -> Played:
        if fault := find_fault(x):
            error = {"message": fault, "type": "invalid_request_error", "code": 400}
            return refused(400, {"error": error})
        calls = x.calls()
        if not calls:
            return streamed(answer())
        first = call_id.format(0)
        pieces = [
            {
                "index": i,
                "id": call_id.format(i),
                "type": "function",
                "function": {"name": name, "arguments": written(values)},
                **(call_fields(first) if i == 0 else {}),
            }
            for i, (name, values) in enumerate(calls)
        ]
        begun = [chunk({"content": None, **head(first)})] if head(first) else []
        return streamed([*begun, chunk({"tool_calls": pieces}), chunk({}, "tool_calls"), counted()])

    return play


def _calling(x: Exchange) -> Iterable[Json]:
    """The calling messages of this model's own."""
    for message in x.messages:
        if any(call["id"].startswith("call_wants") for call in message.get("tool_calls") or ()):
            yield message


def _undetailed(x: Exchange) -> str:
    fine = all(_DETAIL in message.get("reasoning_details", ()) for message in _calling(x))
    return "" if fine else "reasoning_details are missing."


def _unsigned(x: Exchange) -> str:
    return habits.refused("gemini", x.messages)


def _thoughtless(x: Exchange) -> str:
    return habits.refused("deepseek", x.messages)


def _unknown(x: Exchange) -> str:
    return habits.refused("strict", x.messages)


def _long_ids(x: Exchange) -> str:
    ids = [call["id"] for m in x.messages for call in m.get("tool_calls") or ()]
    ids += [m["tool_call_id"] for m in x.messages if m["role"] == "tool"]
    bad = next((i for i in ids if not _SHORT_ID.fullmatch(i)), None)
    return (bad and f"Tool call id was {bad} but must be a-z, A-Z, 0-9, with a length of 9.") or ""


def _unmarked(x: Exchange) -> str:
    """A field of a call that nobody has documented."""
    fine = all(m["tool_calls"][0].get("vendor_mark") == [1] for m in _calling(x))
    return "" if fine else "vendor_mark is missing."


def _twice(x: Exchange) -> str:
    ids = [call["id"] for m in x.messages for call in m.get("tool_calls") or ()]
    return "" if len(ids) == len({*ids}) else "`tool_use` ids must be unique"


def _details(_: str) -> dict[str, Any]:
    return {"reasoning": THOUGHT, "reasoning_details": [_DETAIL]}


_TWO: Final = Expected(calls=2)

HABITS = [
    Habit(
        "reasoning-content",
        "DeepSeek, older vLLM, Moonshot",
        "thinks in `reasoning_content`",
        sends(_in_field("reasoning_content")),
        _THINKS,
    ),
    Habit(
        "reasoning",
        "vLLM, OpenRouter, Groq",
        "thinks in `reasoning`",
        sends(_in_field("reasoning")),
        _THINKS,
    ),
    Habit(
        "think-tags",
        "llama.cpp, Ollama, Together",
        "thinks in `<think>` in its text",
        sends(_in_tags("think")),
        _THINKS,
    ),
    Habit(
        "thought-tags",
        "Gemini",
        "thinks in `<thought>` in its text",
        sends(_in_tags("thought")),
        _THINKS,
    ),
    Habit(
        "thought-flag",
        "Gemini",
        "marks text as thought in `extra_content`",
        sends(_of_gemini()),
        _THINKS,
    ),
    Habit(
        "thinking-parts",
        "Mistral",
        "thinks in parts of type `thinking`",
        sends(_in_parts()),
        _THINKS,
    ),
    Habit(
        "signatures",
        "Gemini",
        "wants the signatures of its calls back",
        _wants(_unsigned, call_fields=lambda i: {"extra_content": habits.signature(i)}),
        _TWO,
        comes_after=True,
    ),
    Habit(
        "thoughts-back",
        "DeepSeek",
        "wants its thoughts back, of each message of a turn that calls",
        _wants(
            _thoughtless,
            head=lambda i: {"reasoning_content": habits.thought(i)},
            call_id="call_deep{0}",
        ),
        Expected(calls=2),
        comes_after=True,
    ),
    Habit(
        "details-back",
        "OpenRouter",
        "wants `reasoning_details` back",
        _wants(_undetailed, head=_details),
        _TWO,
        comes_after=True,
    ),
    Habit(
        "mark-back",
        "any",
        "wants a field of a call back that nobody knows",
        _wants(_unmarked, call_fields=lambda _: {"vendor_mark": [1]}),
        _TWO,
        comes_after=True,
    ),
    Habit(
        "strict-fields",
        "OpenAI, Azure",
        "refuses fields of other vendors in a conversation",
        _wants(_unknown),
        _TWO,
        comes_after=True,
    ),
    Habit(
        "short-ids",
        "Mistral",
        "refuses ids of calls that have not 9 letters and digits",
        _wants(_long_ids, call_id="abcdefgh{0}"),
        _TWO,
        comes_after=True,
    ),
    Habit(
        "unique-ids",
        "gateways to Anthropic",
        "refuses a conversation in which two calls have one id",
        _wants(_twice, call_id="call_0{0}"),
        _TWO,
        comes_after=True,
    ),
]
