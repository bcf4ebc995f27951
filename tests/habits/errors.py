"""How servers refuse, and how they fail in the middle."""

from typing import Any, Final

from tests.habits.habit import (
    ANSWER,
    PIECES,
    Exchange,
    Expected,
    Habit,
    Played,
    answer,
    chunk,
    event,
    refused,
    refuses,
    says,
    sends,
    streamed,
    texts,
)

SHOWN: Final = "".join(PIECES[:2])
_BEGUN = texts(PIECES[:2])


def _fails(code: str, *, said: str = "", message: str = "") -> Expected:
    return Expected("", None, code, message, said)


def _breaks(*, said: str = "") -> Expected:
    return Expected(SHOWN, None, "provider_lost", said=said)


def _openai(message: str, **more: Any) -> dict[str, Any]:
    return {
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "param": None,
            "code": None,
            **more,
        }
    }


def _google(code: int, message: str, status: str, **more: Any) -> list[Any]:
    return [{"error": {"code": code, "message": message, "status": status, **more}}]


def _slow_down_once(x: Exchange) -> Played:
    """Each conversation is turned away once."""
    if x.serial == 1:
        return refused(
            429, _openai("Slow down.", code="rate_limit_exceeded"), (b"retry-after", b"0")
        )
    return streamed(answer())


_GEMINI_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
_OPENROUTER: Any = {
    **chunk({"content": ""}, "error"),
    "error": {
        "code": 502,
        "message": "Provider returned error",
        "metadata": {"raw": "upstream fell over"},
    },
}
_PAGE = b"<!DOCTYPE html><html><title>520: Web server is returning an unknown error</title></html>"

HABITS = [
    Habit(
        "wrong-key",
        "OpenAI",
        "401 for a wrong key",
        refuses(401, _openai("Incorrect API key provided: sk-fake1234.", code="invalid_api_key")),
        _fails("provider_auth", said="401 Incorrect API key"),
    ),
    Habit(
        "wrong-key-400",
        "Gemini",
        "400 for it, in a list",
        refuses(
            400,
            _google(
                400,
                "API key not valid. Please pass a valid API key.",
                "INVALID_ARGUMENT",
                details=[_GEMINI_KEY],
            ),
        ),
        _fails("provider_auth", said="API key not valid"),
    ),
    Habit(
        "wrong-key-string",
        "xAI",
        "400 for it, the error being a text",
        refuses(
            400,
            {
                "code": "Client specified an invalid argument",
                "error": "Incorrect API key provided: xa***AI.",
            },
        ),
        _fails("provider_auth", said="400 Incorrect API key"),
    ),
    Habit(
        "wrong-key-in-stream",
        "gateways",
        "200, and an error in the stream",
        sends([{"error": {"message": "Invalid API key", "type": "authentication_error"}}]),
        _fails("provider_auth", said="Invalid API key"),
    ),
    Habit(
        "error-object",
        "vLLM, SGLang",
        '`{"object": "error"}` instead of `error`',
        refuses(
            400,
            {
                "object": "error",
                "message": "unknown chat template",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
        ),
        _fails("provider_rejected", message="unknown chat template"),
    ),
    Habit(
        "error-object-in-stream",
        "vLLM, SGLang",
        "the same within a stream",
        sends(
            [
                *_BEGUN,
                {
                    "object": "error",
                    "message": "the engine died",
                    "type": "InternalServerError",
                    "code": 500,
                },
            ]
        ),
        _breaks(said="the engine died"),
    ),
    Habit(
        "error-list",
        "Gemini",
        "an error in a list",
        refuses(400, _google(400, "Please use a valid role.", "INVALID_ARGUMENT")),
        _fails("provider_rejected", message="valid role"),
    ),
    Habit(
        "error-list-200",
        "Gemini",
        "the same with status 200",
        refuses(200, _google(503, "The model is overloaded.", "UNAVAILABLE")),
        _fails("provider_unavailable", said="overloaded"),
    ),
    Habit(
        "error-details",
        "Mistral, vLLM",
        "422 with a list of details",
        refuses(
            422,
            {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "Field required"}]},
        ),
        _fails("provider_rejected", message="Field required"),
    ),
    Habit(
        "error-text",
        "proxies",
        "400 with plain words",
        refuses(400, b"no such deployment"),
        _fails("provider_rejected", message="no such deployment"),
    ),
    Habit(
        "html-error",
        "Cloudflare",
        "520 with a page",
        refuses(520, _PAGE, html=True),
        _fails("provider_unavailable"),
    ),
    Habit(
        "html-page",
        "any, at a wrong address",
        "200 with a page",
        refuses(200, _PAGE, html=True),
        _fails("provider_malformed", said="HTML"),
    ),
    Habit(
        "no-credit",
        "DeepSeek",
        "402 for an account without credit",
        refuses(402, _openai("Insufficient Balance")),
        _fails("provider_auth", said="Insufficient Balance", message="no credit"),
    ),
    Habit(
        "no-credit-in-stream",
        "OpenRouter",
        "402 within the stream",
        sends([{"error": {"code": 402, "message": "This request requires more credits."}}]),
        _fails("provider_auth", said="requires more credits", message="no credit"),
    ),
    Habit(
        "timeout-408",
        "OpenRouter",
        "408 when it waited too long itself",
        refuses(408, _openai("Your request timed out")),
        _fails("provider_timeout", said="408 Your request"),
    ),
    Habit(
        "moderated",
        "OpenRouter, xAI",
        "403 for a question that a filter stopped",
        refuses(
            403,
            {
                "error": {
                    "code": 403,
                    "message": "Your input was flagged",
                    "metadata": {"reasons": ["x"]},
                }
            },
        ),
        _fails("provider_rejected", message="flagged"),
    ),
    Habit("slow-down-once", "any", "429 once, with Retry-After", _slow_down_once),
    Habit(
        "rate-limit",
        "Zhipu",
        "429 with a number as its code",
        refuses(429, {"error": {"code": "1302", "message": "您的账户已达到速率限制"}}),
        _fails("provider_rate_limited", said="速率限制"),
    ),
    Habit(
        "flex-full",
        "Groq",
        "498 when its flexible tier is full",
        refuses(498, _openai("capacity exceeded")),
        _fails("provider_rate_limited", said="498 capacity"),
    ),
    Habit(
        "overloaded",
        "Anthropic",
        "529",
        refuses(
            529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        ),
        _fails("provider_unavailable", said="Overloaded"),
    ),
    Habit(
        "no-model",
        "Ollama",
        "404 for a model that it lacks",
        refuses(404, _openai("model 'x' not found, try pulling it first")),
        _fails("provider_rejected", message="try pulling it"),
    ),
    Habit(
        "too-long",
        "OpenAI",
        "400 for a context that is too long",
        refuses(
            400,
            _openai(
                "This model's maximum context length is 8192 tokens.",
                code="context_length_exceeded",
            ),
        ),
        _fails("context_too_long", said="8192"),
    ),
    Habit(
        "too-long-field",
        "llama.cpp",
        "says it in a field `error` of the stream",
        says(
            b'error: {"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}\n\n'
        ),
        _fails("context_too_long", said="available context size"),
    ),
    Habit(
        "call-failed",
        "Groq",
        "400 for a call that its model wrote wrongly",
        refuses(
            400,
            _openai(
                "Failed to call a function.",
                code="tool_use_failed",
                failed_generation="<function=x>",
            ),
        ),
        _fails("provider_rejected", message="Failed to call"),
    ),
    Habit(
        "error-named",
        "LM Studio",
        "an event named `error`",
        says(
            event(_BEGUN[0]),
            *map(event, _BEGUN[1:]),
            b'event: error\ndata: {"message": "the model crashed"}\n\n',
        ),
        _breaks(said="the model crashed"),
    ),
    Habit(
        "error-string",
        "Ollama",
        "an error that is a text",
        sends([*_BEGUN, {"error": "model runner has unexpectedly stopped"}]),
        _breaks(said="unexpectedly stopped"),
    ),
    Habit(
        "error-and-reason",
        "OpenRouter",
        "an error beside the finish reason `error`",
        sends([*_BEGUN, _OPENROUTER]),
        _breaks(said="upstream fell over"),
    ),
    Habit(
        "error-reason",
        "Mistral, OpenRouter",
        "the finish reason `error` alone",
        sends([*_BEGUN, chunk({}, "error")]),
        _breaks(said="finish reason error"),
    ),
    Habit("empty-body", "proxies", "200, and nothing", says(b""), _fails("provider_lost")),
    Habit("done-alone", "vLLM", "200, and `[DONE]`", sends([]), _fails("provider_lost")),
    Habit(
        "cut-off",
        "any",
        "cuts the connection",
        lambda _: streamed(_BEGUN, done=False, is_cut=True),
        _breaks(),
    ),
    Habit(
        "no-reason",
        "proxies",
        "ends without a finish reason",
        sends(texts(), done=False),
        Expected(ANSWER, None, "provider_lost"),
    ),
]
