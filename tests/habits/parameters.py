"""Which parameters models refuse, and which they want."""

from collections.abc import Callable
from typing import Any

from tests.habits.habit import Exchange, Habit, Played, answer, refused, streamed


def _without(name: str, body: Any, status: int = 400) -> Callable[[Exchange], Played]:
    """Refuses requests that carry this parameter."""
    return lambda x: refused(status, body) if name in x.request else streamed(answer())


def _wants(name: str, value: Any) -> Callable[[Exchange], Played]:
    body = _openai(f"'{name}' must be {value!r}.")
    return lambda x: streamed(answer()) if x.request.get(name) == value else refused(400, body)


def _openai(message: str, param: str | None = None, code: str | None = None) -> Any:
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    }


def _xai(message: str) -> Any:
    return {"code": "Client specified an invalid argument", "error": message}


def _reasoning_model(x: Exchange) -> Played:
    """Refuses one parameter after the other."""
    for name in ("max_tokens", "temperature", "top_p", "presence_penalty", "stop"):
        if name in x.request:
            hint = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
            said = f"Unsupported parameter: '{name}' is not supported with this model.{hint}"
            return refused(400, _openai(said, name, "unsupported_parameter"))
    return streamed(answer())


def _only_known(x: Exchange) -> Played:
    unknown = {*x.request} - {
        "model",
        "messages",
        "stream",
        "tools",
        "max_completion_tokens",
        "stream_options",
    }
    return refused(400, _openai(f"What is {unknown}?")) if unknown else streamed(answer())


_ALL = {
    "temperature": 0.3,
    "top_p": 0.9,
    "stop": ["###"],
    "presence_penalty": 0.5,
    "max_tokens": 500,
}
_TEMPERATURE = "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) value is supported."
_EXTRA = {
    "type": "extra_forbidden",
    "loc": ["body", "stream_options"],
    "msg": "Extra inputs are not permitted",
}

HABITS = [
    Habit(
        "max-completion-tokens",
        "OpenAI (o-series, GPT-5)",
        "refuses `max_tokens`, wants `max_completion_tokens`",
        _without(
            "max_tokens",
            _openai(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                "max_tokens",
                "unsupported_parameter",
            ),
        ),
        row={"extra_parameters": {"max_tokens": 500}},
    ),
    Habit(
        "no-temperature",
        "OpenAI (o-series, GPT-5)",
        "refuses `temperature`",
        _without("temperature", _openai(_TEMPERATURE, "temperature", "unsupported_value")),
        row={"extra_parameters": {"temperature": 0.3}},
    ),
    Habit(
        "one-temperature",
        "Moonshot",
        "takes one `temperature` alone",
        _without("temperature", _openai("invalid temperature: only 1 is allowed for this model")),
        row={"extra_parameters": {"temperature": 0.3}},
    ),
    Habit(
        "no-stop",
        "xAI",
        "refuses `stop`",
        _without("stop", _xai("Argument not supported on this model: stop")),
        row={"extra_parameters": {"stop": ["###"]}},
    ),
    Habit(
        "no-penalty",
        "xAI",
        "refuses `presence_penalty`, in camel case",
        _without(
            "presence_penalty", _xai("Model grok-4 does not support parameter presencePenalty.")
        ),
        row={"extra_parameters": {"presence_penalty": 0.5}},
    ),
    Habit(
        "no-seed",
        "Gemini",
        "refuses `seed`",
        _without(
            "seed",
            [
                {
                    "error": {
                        "code": 400,
                        "message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.',
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ],
        ),
        row={"extra_parameters": {"seed": 1}},
    ),
    Habit(
        "no-stream-options",
        "Mistral",
        "refuses `stream_options`, with 422",
        _without("stream_options", {"detail": [_EXTRA]}, 422),
    ),
    Habit(
        "no-top-k",
        "OpenAI",
        "refuses a parameter of other vendors",
        _without("top_k", _openai("Unrecognized request argument supplied: top_k")),
        row={"extra_parameters": {"top_k": 5}},
    ),
    Habit(
        "reasoning-model",
        "OpenAI, Azure",
        "refuses five parameters, one at a time",
        _reasoning_model,
        row={"extra_parameters": _ALL},
    ),
    Habit(
        "wants-flag",
        "vLLM, SGLang",
        "wants a flag of its own",
        _wants("chat_template_kwargs", {"enable_thinking": False}),
        row={
            "extra_parameters": {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}
        },
    ),
    Habit(
        "wants-effort",
        "Groq, xAI",
        "wants `reasoning_effort`",
        _wants("reasoning_effort", "low"),
        row={"extra_parameters": {"reasoning_effort": "low"}},
    ),
    Habit(
        "wants-temperature",
        "Moonshot",
        "wants `temperature` 1, whatever is asked",
        _wants("temperature", 1),
        row={"extra_parameters": {"temperature": 0.3}, "forced_parameters": {"temperature": 1}},
    ),
    Habit(
        "only-known",
        "strict gateways",
        "refuses all that it does not know, without naming it",
        _only_known,
        row={
            "allowed_parameters": ["max_completion_tokens"],
            "extra_parameters": {"max_tokens": 500},
        },
    ),
]
