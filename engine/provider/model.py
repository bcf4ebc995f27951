"""Define what a chat model is to a turn: a stream of parts, an end, or one kind of error.

`engine.provider.openai_model` speaks to providers, `engine.provider.offline` answers without one;
the loop knows only this protocol. Deadlines and retries are not the model's business: see
`engine.provider.reply`.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import orjson

from engine.messages import MessageFields, ProviderMessage
from engine.tool_calls import ToolCall
from engine.tools import ToolChoice, ToolSpec

SystemPosition = Literal["first", "last", "only_first"]

ProviderErrorCode = Literal[
    "provider_unavailable",
    "provider_rate_limited",
    "provider_timeout",
    "provider_lost",
    "provider_malformed",
    "provider_rejected",
    "provider_auth",
    "context_too_long",
    "reply_too_long",
]

RETRYABLE: frozenset[str] = frozenset(
    {
        "provider_unavailable",
        "provider_rate_limited",
        "provider_timeout",
        "provider_lost",
        "provider_malformed",
    }
)


class ProviderError(Exception):
    """The provider failed. `code` is the decision a caller makes; the text is for people.

    The text never carries keys or bodies of other tenants. `retry_after_seconds` is what the
    provider asked for, or None. `said` is what it said in its own words, for operators alone;
    `parameter` which parameter of the request it named, "" for none.
    """

    def __init__(
        self,
        code: ProviderErrorCode,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        said: str = "",
        parameter: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        self.said = said
        self.parameter = parameter

    @property
    def retryable(self) -> bool:
        return self.code in RETRYABLE


@dataclass(frozen=True, slots=True)
class ParameterRules:
    """What an operator says of one model's parameters.

    Of sampling and vendors' parameters only `allowed` ones are sent, all if it is empty. `extra` are
    sent unless the request says otherwise; `forced` whatever it says, None: not at all.
    """

    allowed: frozenset[str] = frozenset()
    extra: Mapping[str, Any] = field(default_factory=dict)
    forced: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What one model can do; a row of `providers.models.LanguageModel` without the row."""

    upstream_id: str
    context_tokens: int = 128_000
    max_output_tokens: int = 4_096
    vision: bool = False
    encoding: str = "o200k_base"
    tool_dialect: str = "tools"
    """A name in `engine.provider.dialects`."""

    system_position: SystemPosition = "first"
    sender: str = ""
    """Marks the fields that are to go back to it (`engine.provider_fields.sender_of`)."""

    parameters: ParameterRules = field(default_factory=ParameterRules, hash=False)


def as_json(fields: Mapping[str, Any]) -> bytes:
    """Return a request's body. Halves of characters, which JSON may not hold, become `?`."""
    try:
        return orjson.dumps(fields, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # a lone surrogate, or a type only the standard library knows
        return json.dumps(fields, ensure_ascii=False, default=str).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply as the provider counted them (or as Amber estimated them).

    `cached_tokens` are part of the prompt's, `reasoning_tokens` of the completion's.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


MAX_TOKENS: Final = 100_000_000
"""More than any request has; what all requests of a turn count must fit into a column."""


def usage_of(counts: Any) -> Usage | None:
    """Read token counts as a provider wrote them; return None if they cannot be read, or cannot be.

    Some count what was thought beside the completion (xAI, Gemini): the total tells.
    """
    if not isinstance(counts, dict):
        return None
    prompt = counts.get("prompt_tokens")
    if not isinstance(prompt, int):
        return None
    cached = _detail(counts, "prompt_tokens_details", "cached_tokens")
    if cached is None:
        cached = counts.get("prompt_cache_hit_tokens")  # DeepSeek
    thought = _count(_detail(counts, "completion_tokens_details", "reasoning_tokens"))
    completion = _count(counts.get("completion_tokens"))
    beside = _count(counts.get("total_tokens")) - _count(prompt) - completion
    if beside > 0 and beside >= thought:
        thought, completion = beside, completion + beside
    if max(_count(prompt), _count(cached), completion) > MAX_TOKENS:
        return None
    return Usage(_count(prompt), completion, _count(cached), min(thought, completion))


def _detail(counts: Mapping[str, Any], group: str, name: str) -> Any:
    details = counts.get(group)
    return details.get(name) if isinstance(details, dict) else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request. `messages` is in OpenAI's `tools` form whatever the model's dialect; `headers` go to the
    provider as they are."""

    messages: Sequence[ProviderMessage]
    tools: Sequence[ToolSpec] = ()
    tool_choice: ToolChoice | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    stop: Sequence[str] = ()
    seed: int | None = None
    response_format: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextChunk:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningChunk:
    """What the model thinks, for people to read. What it wants back of that is in the
    `provider_fields`."""

    text: str


@dataclass(frozen=True, slots=True)
class CallChunk:
    """One whole tool call; models gather the pieces themselves. `reply_id` is None here."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ReplyEnd:
    """The provider said that the reply is over. `usage` is None when it did not count.

    `provider_fields` came with the message (`engine.provider_fields`); those of a call are its own.
    """

    finish_reason: str
    usage: Usage | None = None
    provider_fields: MessageFields = field(default_factory=dict)


ReplyPart = TextChunk | ReasoningChunk | CallChunk | ReplyEnd


class Model(Protocol):
    """A chat model."""

    @property
    def profile(self) -> ModelProfile: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyPart, None]:
        """Yield one reply: text and reasoning as they come, then whole calls, then exactly one
        ReplyEnd.

        Closing the generator or cancelling its task closes the upstream socket at once.
        Raises ProviderError; a stream that ends without a finish reason is `provider_lost`.
        """
        ...
