"""Try a provider for real: a question, a round with a tool, an image, an embedding.

Each is an exchange as turns make them, without retries, so that an operator sees what a turn would
meet. Slow, never within a transaction, and in no ledger: no organization asked. Changes no row.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Literal

from amber.lib.database.connections import release_connections
from engine import loop
from engine.loop_events import Reply
from engine.messages import Content
from engine.provider.embedding import Embedder
from engine.provider.model import Model, ModelRequest, ProviderError
from engine.provider.reply import RetryPolicy
from engine.tool_calls import ToolCall
from engine.tools import Toolbox, ToolResult, ToolSpec
from engine.trust import Exposure
from providers import registry
from providers.models import EmbeddingModel, LanguageModel, Provider

CHECK_SECONDS: Final = 60.0
"""How long a provider may take for one request. A model that is not loaded yet needs most of it."""

MAX_SHOWN_CHARS: Final = 200
_ONCE: Final = RetryPolicy(first_token_seconds=CHECK_SECONDS, idle_seconds=30, retries=0)

CheckKind = Literal["question", "tool round", "image", "embedding"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What came of a check. `detail` is a sentence, or the beginning of what the model said."""

    kind: CheckKind
    model: str
    works: bool
    detail: str
    first_token_ms: int | None = None
    total_ms: int = 0


def models_to_check(
    provider: Provider, alias: str = ""
) -> tuple[LanguageModel | None, EmbeddingModel | None]:
    """Return the provider's models of this alias; without one the defaults, else the oldest enabled
    ones."""
    language = provider.models.select_related("provider").order_by("-default", "created_at")
    embedding = provider.embedding_models.select_related("provider")
    embedding = embedding.order_by("-default", "created_at")
    named = {"alias": alias} if alias else {"enabled": True}
    return language.filter(**named).first(), embedding.filter(**named).first()


def check_models(
    language: LanguageModel | None, embedding: EmbeddingModel | None
) -> list[CheckResult]:
    """Check these models, one request after the other. Asks the provider. Raises DecryptError."""
    checks: list[_Check] = []
    if language is not None:
        model = registry.engine_model(language)
        is_marked = language.vision
        checks += [
            _Check("question", language.alias, lambda: _ask(model)),
            _Check("tool round", language.alias, lambda: _use_tool(model)),
            _Check("image", language.alias, lambda: _look(model, is_marked=is_marked)),
        ]
    if embedding is not None:
        embedder = registry.engine_embedder(embedding, retry_policy=_ONCE)
        checks.append(_Check("embedding", embedding.alias, lambda: _embed(embedder)))
    release_connections()
    return asyncio.run(_run(checks))


@dataclass(frozen=True, slots=True)
class _Outcome:
    works: bool
    detail: str
    first_token_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _Check:
    kind: CheckKind
    model: str
    attempt: Callable[[], Awaitable[_Outcome]]


async def _run(checks: Sequence[_Check]) -> list[CheckResult]:
    return [await _time(check) for check in checks]


async def _time(check: _Check) -> CheckResult:
    started = time.monotonic()
    try:
        outcome = await check.attempt()
    except ProviderError as error:
        outcome = _Outcome(False, error.message)
    first = outcome.first_token_seconds
    return CheckResult(
        check.kind,
        check.model,
        outcome.works,
        outcome.detail,
        first_token_ms=None if first is None else round(first * 1_000),
        total_ms=round((time.monotonic() - started) * 1_000),
    )


async def _ask(model: Model) -> _Outcome:
    reply = (await _replies(model, "What is the capital of France? Answer in one word."))[-1]
    if not reply.text.strip():
        return _Outcome(False, f"It said nothing (finish reason: {reply.finish_reason}).")
    detail = _quote(reply.text)
    if reply.usage is None:
        detail += " It does not count tokens; Amber estimates them."
    return _Outcome(True, detail, reply.first_token_seconds)


async def _use_tool(model: Model) -> _Outcome:
    gauge = _Gauge()
    question = "Read gauge A7 with read_gauge, and tell me the number that it shows."
    replies = await _replies(model, question, gauge)
    if not gauge.was_read:
        return _Outcome(False, f"It did not call the tool. {_quote(replies[-1].text)}")
    detail = _quote(replies[-1].text)
    if _SHOWN not in replies[-1].text.replace(",", ""):
        return _Outcome(False, f"It called the tool, but did not tell its result. {detail}")
    return _Outcome(True, detail, replies[-1].first_token_seconds)


async def _look(model: Model, *, is_marked: bool) -> _Outcome:
    question: Content = [
        {"type": "image_url", "image_url": {"url": _RED_SQUARE, "detail": "auto"}},
        {"type": "text", "text": "Which colour is this picture? Answer in one word."},
    ]
    reply = (await _replies(model, question))[-1]
    sees = "red" in reply.text.lower()
    advice = ""
    if sees != is_marked:
        advice = " Tick “vision” of the model." if sees else " Untick “vision” of the model."
    return _Outcome(sees, _quote(reply.text) + advice, reply.first_token_seconds)


async def _embed(embedder: Embedder) -> _Outcome:
    vectors = await embedder.embed(["The pump is in the cellar."])
    return _Outcome(True, f"A vector of {vectors.shape[1]:,} numbers.")


async def _replies(model: Model, question: Content, toolbox: Toolbox | None = None) -> list[Reply]:
    """Return what the model says to this, and to the results of what it calls."""
    request = ModelRequest(
        [{"role": "user", "content": question}], tools=toolbox.specs if toolbox else ()
    )
    loop_events = loop.run(
        model, request, toolbox=toolbox or _Gauge(), retry_policy=_ONCE, max_tool_rounds=3
    )
    async with aclosing(loop_events):
        return [each async for each in loop_events if isinstance(each, Reply)]


class _Gauge:
    """The one tool of a check."""

    specs = (
        ToolSpec(
            "read_gauge",
            "Reads a gauge and returns the number that it shows.",
            {
                "type": "object",
                "properties": {"name": {"type": "string", "description": "The gauge, as A7"}},
                "required": ["name"],
            },
        ),
    )

    def __init__(self) -> None:
        self.was_read = False

    def is_safe_to_repeat(self, name: str) -> bool:
        return True

    def asks_first(self, call: ToolCall, exposure: Exposure) -> bool:
        return False

    def is_client_tool(self, name: str) -> bool:
        return False

    async def call(self, call: ToolCall, exposure: Exposure) -> ToolResult:
        self.was_read = True
        return ToolResult(call.id, True, f"The gauge shows {_SHOWN}.")


def _quote(text: str) -> str:
    said = " ".join(text.split())
    return f"It said: “{said[:MAX_SHOWN_CHARS]}{'…' if len(said) > MAX_SHOWN_CHARS else ''}”"


_SHOWN: Final = "4711"
_RED_SQUARE: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAATUlEQVR42u3PQQ0AAAgEoN"
    "P+EQ1jBN9u0ICa/NYREBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEDgsuX8BXFSuPQ8AAAAASUVORK5CYII="
)
"""64 pixels wide: some models refuse smaller ones."""
