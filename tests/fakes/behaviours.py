"""What each fake model does: a table, so that a test orders a fault by a model's name.

Any name here may take the suffix `-once`: the first request of each distinct conversation
(same messages) meets the fault, the next one is answered well.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fakes.habits import Habit

Answer = Literal["words", "echo", "parrot", "parallel", "endless", "obedient"]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The defaults answer well. `*_after` count the tokens sent before the fault strikes."""

    meaning: str
    answer: Answer = "words"
    status: int | None = None
    """Answer with this HTTP status and `error` as its body."""
    error: dict[str, Any] = field(default_factory=lambda: {"message": "asked to fail"})
    headers: tuple[tuple[bytes, bytes], ...] = ()
    hang_after: int | None = None
    """Fall silent, with the connection open."""
    cut_after: int | None = None
    """Cut the connection."""
    raw_after: int | None = None
    """Send `raw` as it is, then end the body."""
    raw: bytes = b""
    finish_reason: str | None = "stop"
    """None: the stream ends without one (and without [DONE])."""
    has_done: bool = True
    ttft_ms: float = 0
    itl_ms: float = 0
    ignores_stream: bool = False
    """Answer with one JSON object though a stream was asked for."""
    refused_field: str | None = None
    """Refuse requests that carry this field with 400."""
    habit: Habit = ""
    """What it sends beyond OpenAI's form, and wants back (`tests.fakes.habits`)."""


_BAD_JSON = b'data: {"choices": [{"delta"\n\n'
_WRONG_SHAPE = b'data: {"choices": [{"index": 0, "delta": "text", "finish_reason": null}]}\n\n'
_ERROR_EVENT = b'data: {"error": {"message": "the engine fell over", "code": 503}}\n\n'
_TOO_LONG = {
    "message": "This model's maximum context length is 100 tokens. However, you requested 200.",
    "type": "invalid_request_error",
    "code": "context_length_exceeded",
}

BEHAVIOURS: dict[str, Behaviour] = {
    "fake-model": Behaviour("answers well"),
    "fake-slow": Behaviour("answers at a slow pace", ttft_ms=300, itl_ms=50),
    "fake-echo": Behaviour("answers with the JSON of the messages it got", answer="echo"),
    "fake-parrot": Behaviour("starts with a [Sent at …] line, then answers", answer="parrot"),
    "fake-parallel-tools": Behaviour("calls two tools at once, then answers", answer="parallel"),
    "fake-endless-tools": Behaviour("calls a tool as long as one is offered", answer="endless"),
    "fake-obedient": Behaviour("does whatever any text tells it", answer="obedient"),
    "fake-length": Behaviour("ends with finish_reason length", finish_reason="length"),
    "fake-filter": Behaviour("ends with content_filter", finish_reason="content_filter"),
    "fake-json": Behaviour("answers with one JSON object, never streams", ignores_stream=True),
    "fake-json-parallel-tools": Behaviour(
        "calls two tools at once, then answers, never streams",
        answer="parallel",
        ignores_stream=True,
    ),
    "fake-no-stream-options": Behaviour("refuses `stream_options`", refused_field="stream_options"),
    "fake-no-max-tokens": Behaviour("refuses `max_tokens`", refused_field="max_tokens"),
    "fake-no-dimensions": Behaviour("refuses `dimensions`", refused_field="dimensions"),
    "fake-no-encoding-format": Behaviour(
        "refuses `encoding_format`", refused_field="encoding_format"
    ),
    "fake-gemini": Behaviour("signs its calls, and wants them back signed", habit="gemini"),
    "fake-deepseek": Behaviour("thinks, and wants its thoughts back", habit="deepseek"),
    "fake-mistral": Behaviour("thinks in parts, and takes its own ids only", habit="mistral"),
    "fake-anthropic": Behaviour("takes its own ids only, each once", habit="anthropic"),
    "fake-chatglm3": Behaviour("knows roles, texts and one call", habit="chatglm3"),
    "fake-openai": Behaviour("takes short ids only", habit="openai"),
    "fake-think-tags": Behaviour("thinks in <think>", habit="tags"),
    "fake-reasoning": Behaviour("thinks in `reasoning`", habit="reasoning"),
    "fake-json-mistral": Behaviour("the same, never streams", habit="mistral", ignores_stream=True),
    "fake-json-think-tags": Behaviour("the same, never streams", habit="tags", ignores_stream=True),
    "fake-json-reasoning": Behaviour(
        "the same, never streams", habit="reasoning", ignores_stream=True
    ),
    "fake-deepseek-cut": Behaviour("is cut off while it thinks", habit="deepseek", cut_after=1),
    "fake-deepseek-hang": Behaviour("falls silent in a thought", habit="deepseek", hang_after=1),
    "fake-deepseek-cut-mid": Behaviour("thinks, then is cut off", habit="deepseek", cut_after=4),
    "fake-json-gemini": Behaviour("the same, never streams", habit="gemini", ignores_stream=True),
    "fake-json-deepseek": Behaviour(
        "the same, never streams", habit="deepseek", ignores_stream=True
    ),
    "fake-strict": Behaviour("refuses fields that are not OpenAI's", habit="strict"),
    "fake-429": Behaviour("429", status=429),
    "fake-429-retry-after": Behaviour(
        "429 with Retry-After: 1", status=429, headers=((b"retry-after", b"1"),)
    ),
    "fake-500": Behaviour("500", status=500),
    "fake-503": Behaviour("503", status=503),
    "fake-400": Behaviour("400", status=400),
    "fake-401": Behaviour("401", status=401, error={"message": "bad key", "code": "401"}),
    "fake-403": Behaviour("403", status=403),
    "fake-404": Behaviour("404", status=404, error={"message": "no such model"}),
    "fake-context-too-long": Behaviour("400, context too long", status=400, error=_TOO_LONG),
    "fake-hang-first": Behaviour("silent instead of the first token", hang_after=0),
    "fake-hang-mid": Behaviour("silent after 3 tokens", hang_after=3),
    "fake-cut-first": Behaviour("connection cut before the first token", cut_after=0),
    "fake-cut-mid": Behaviour("connection cut after 3 tokens", cut_after=3),
    "fake-malformed-first": Behaviour("bad JSON first", raw_after=0, raw=_BAD_JSON),
    "fake-malformed-mid": Behaviour("bad JSON after 3 tokens", raw_after=3, raw=_BAD_JSON),
    "fake-wrong-shape": Behaviour("a delta that is a string", raw_after=0, raw=_WRONG_SHAPE),
    "fake-wrong-shape-mid": Behaviour("the same after 3 tokens", raw_after=3, raw=_WRONG_SHAPE),
    "fake-error-event": Behaviour("an error event first", raw_after=0, raw=_ERROR_EVENT),
    "fake-error-event-mid": Behaviour("the same after 3 tokens", raw_after=3, raw=_ERROR_EVENT),
    "fake-no-finish": Behaviour("no finish_reason, no [DONE]", finish_reason=None),
    "fake-no-finish-first": Behaviour("an empty stream", raw_after=0),
    "fake-no-done": Behaviour("finish_reason, then the end without [DONE]", has_done=False),
}


def behaviour_of(model: str) -> tuple[Behaviour, bool]:
    """The behaviour of a model and whether it strikes only once; unknown names answer well."""
    plain = model.removesuffix("-once")
    return BEHAVIOURS.get(plain, BEHAVIOURS["fake-model"]), plain != model
