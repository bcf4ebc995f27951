"""Trace the calls of providers: a model and an embedder that make each call a span.

They pass everything on as it comes. Where nothing is traced `providers.registry` does without them, and a call in
a trace that is not recorded is handed to the model itself: nothing is added to its chunks. For organizations that
allow it a span also has what the model was sent and answered, as OpenTelemetry's conventions want it; images are
left out, and long texts cut: a span is no archive.
https://github.com/open-telemetry/semantic-conventions-genai (gen-ai-input-messages.json,
gen-ai-output-messages.json)
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson

from amber.lib.tracing import names, spans
from amber.lib.tracing.spans import cut_text
from engine.messages import ProviderMessage
from engine.provider.embedding import Embedder
from engine.provider.model import (
    CallChunk,
    Model,
    ModelProfile,
    ModelRequest,
    ReplyEnd,
    ReplyPart,
    TextChunk,
    Usage,
)
from engine.tool_calls import ToolCall

if TYPE_CHECKING:
    from engine.provider.embedding import Vectors


class TracedModel:
    """A model whose calls are spans `chat …`. `base_url` is its provider's, empty for one without."""

    def __init__(self, model: Model, *, base_url: str) -> None:
        self._model = model
        self._base_url = base_url

    @property
    def profile(self) -> ModelProfile:
        return self._model.profile

    def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyPart, None]:
        name = names.CHAT.format(model=self.profile.upstream_id)
        kind: spans.Kind = "client" if self._base_url else "internal"
        about = {
            **_about(self._base_url, "chat", self.profile.upstream_id),
            **_describe_request(request),
        }
        span = spans.begin(name, about, kind=kind)
        if headers := spans.headers_for("providers", span):
            request = replace(request, headers=headers)
        return self._trace(request, span) if span.is_recorded else self._model.stream(request)

    async def _trace(
        self, request: ModelRequest, span: spans.TraceSpan
    ) -> AsyncGenerator[ReplyPart, None]:
        shown = _ShownReply() if spans.may_show_content() else None
        if shown is not None:
            span.set({names.INPUT_MESSAGES: written_request(request.messages)})
        began, is_first = time.monotonic(), True
        try:
            async with aclosing(self._model.stream(request)) as parts:
                async for part in parts:
                    if is_first:
                        is_first = False
                        span.set({names.TIME_TO_FIRST_CHUNK: time.monotonic() - began})
                    if shown is not None:
                        shown.add(part)
                    if isinstance(part, ReplyEnd):
                        _end(span, part, shown)  # whoever reads this reads no further
                    yield part
        except BaseException as error:
            span.end(spans.error_type(error))
            raise
        finally:
            span.end()


class _ShownReply:
    """What a model has said so far, for an organization that allows it in spans."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls: list[ToolCall] = []

    def add(self, part: ReplyPart) -> None:
        if isinstance(part, TextChunk):
            self._texts.append(part.text)
        elif isinstance(part, CallChunk):
            self._calls.append(part.call)

    def write(self, finish_reason: str) -> str:
        return written_reply("".join(self._texts), self._calls, finish_reason)


def _end(span: spans.TraceSpan, end: ReplyEnd, shown: _ShownReply | None) -> None:
    span.set({names.FINISH_REASONS: [end.finish_reason], **_describe_usage(end.usage)})
    if shown is not None:
        span.set({names.OUTPUT_MESSAGES: shown.write(end.finish_reason)})
    span.end()


class TracedEmbedder:
    """An embedder whose calls are spans `embeddings …`. `make` makes it of a function that gets the
    tokens of each call."""

    def __init__(
        self,
        make: Callable[[Callable[[Usage], None]], Embedder],
        *,
        base_url: str,
        on_usage: Callable[[Usage], None] | None,
    ) -> None:
        self._embedder = make(self._count)
        self._base_url = base_url
        self._on_usage = on_usage

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        about = {
            **_about(self._base_url, "embeddings", self.model_id),
            names.EMBEDDING_DIMENSIONS: self.dimensions,
            names.TEXTS: len(texts),
        }
        name = names.EMBEDDINGS.format(model=self.model_id)
        with spans.span(name, about, kind="client" if self._base_url else "internal"):
            return await self._embedder.embed(texts)

    def _count(self, usage: Usage) -> None:
        spans.current().set({names.INPUT_TOKENS: usage.prompt_tokens})
        if self._on_usage is not None:
            self._on_usage(usage)


def _about(base_url: str, operation: str, model: str) -> dict[str, str | int | None]:
    at = urlsplit(base_url)
    return {
        names.OPERATION: operation,
        names.PROVIDER: names.provider_name(base_url),
        names.REQUEST_MODEL: model,
        names.SERVER_ADDRESS: at.hostname,
        names.SERVER_PORT: at.port or {"https": 443, "http": 80}.get(at.scheme),
    }


def _describe_request(request: ModelRequest) -> spans.Attributes:
    return {
        names.REQUEST_STREAM: True,
        names.REQUEST_MAX_TOKENS: request.max_output_tokens,
        names.REQUEST_TEMPERATURE: request.temperature,
        names.REQUEST_TOP_P: request.top_p,
        names.REQUEST_SEED: request.seed,
    }


def _describe_usage(usage: Usage | None) -> spans.Attributes:
    if usage is None:
        return {}
    return {
        names.INPUT_TOKENS: usage.prompt_tokens,
        names.OUTPUT_TOKENS: usage.completion_tokens,
        names.CACHED_TOKENS: usage.cached_tokens or None,
        names.REASONING_TOKENS: usage.reasoning_tokens or None,
    }


MOST_MESSAGES: Final = 50
"""The last ones are written."""


def written_request(messages: Sequence[ProviderMessage]) -> str:
    return _json([_message(each) for each in messages[-MOST_MESSAGES:]])


def written_reply(text: str, calls: Sequence[ToolCall], finish_reason: str) -> str:
    called = [_call(call.id, call.name, call.arguments) for call in calls]
    parts = [*([_text(text)] if text else []), *called]
    return _json([{"role": "assistant", "parts": parts, "finish_reason": finish_reason}])


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    role, content = message["role"], message.get("content")
    if role == "tool":
        answer = {"type": "tool_call_response", "id": message.get("tool_call_id")}
        return {"role": role, "parts": [{**answer, "response": cut_text(str(content))}]}
    parts = (
        [_text(content)] if isinstance(content, str) else [_part(each) for each in content or ()]
    )
    calls = [
        _call(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    return {"role": role, "parts": [*parts, *calls]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    return _text(part["text"]) if "text" in part else {"type": str(part.get("type", "other"))}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": cut_text(text)}


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": cut_text(arguments)}


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
