"""How the servers of Anthropic's and OpenAI's newer APIs answer: `tests.fakes.anthropic`, `tests.fakes.responses`.

They play by themselves; a marker in the question names the tool to call.
"""

from typing import Any

from tests.habits.habit import Expected, Habit

_ONE = Expected("42", calls=1, counted=None)
_THINKS: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 2_048}}


def _anthropic(name: str, does: str, upstream: str, expected: Expected, **row: Any) -> Habit:
    row = {"tool_dialect": "anthropic", **row}
    return Habit(name, "Anthropic", does, expected=expected, row=row, upstream=upstream)


def _responses(name: str, does: str, upstream: str, expected: Expected) -> Habit:
    row = {"tool_dialect": "responses"}
    return Habit(name, "OpenAI (Responses)", does, expected=expected, row=row, upstream=upstream)


def _fails(code: str, text: str = "") -> Expected:
    return Expected(text, None, code)


HABITS = [
    _anthropic("messages", "speaks the Messages API, and calls", "claude-calls", _ONE),
    _anthropic(
        "messages-thinking",
        "wants its signed thoughts back",
        "claude-thinks",
        _ONE,
        forced_parameters=_THINKS,
    ),
    _anthropic("messages-whole", "answers without a stream", "claude-whole", _ONE),
    _anthropic("messages-overloaded", "529", "claude-overloaded", _fails("provider_unavailable")),
    _anthropic(
        "messages-long", "a prompt that is too long", "claude-long", _fails("context_too_long")
    ),
    _anthropic(
        "messages-breaks",
        "an error event in the middle",
        "claude-breaks",
        _fails("provider_lost", "Let me look."),
    ),
    _responses("responses", "speaks the Responses API, and calls", "gpt-plain", _ONE),
    _responses("responses-reasoning", "wants its encrypted reasoning back", "gpt-thinks", _ONE),
    _responses("responses-whole", "answers without a stream", "gpt-whole", _ONE),
    _responses("responses-limited", "429", "gpt-limited", _fails("provider_rate_limited")),
]
