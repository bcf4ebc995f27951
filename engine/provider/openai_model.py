"""Stream replies of chat models behind OpenAI-compatible APIs, through `engine.provider.client`.

What a provider refuses, a parameter or a form of messages, is learnt and left out the next time.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog

from engine.message_mends import MessageMends, known_mends
from engine.messages import ProviderMessage
from engine.provider.chunks import ReplyGatherer, gatherer_of
from engine.provider.client import (
    Endpoint,
    log_failures,
    payloads,
    response_errors,
    send,
    shared_client,
)
from engine.provider.dialects import DIALECTS
from engine.provider.model import (
    CallChunk,
    ModelProfile,
    ModelRequest,
    ProviderError,
    ReasoningChunk,
    ReplyEnd,
    ReplyPart,
    TextChunk,
    as_json,
)
from engine.provider.parameters import (
    BY_WORDS,
    refused_by_another_name,
    refused_parameter,
    sent_parameters,
)
from engine.provider.reply_size import MAX_REPLY_CHARS, ReplySize

if TYPE_CHECKING:
    import httpx2

logger = structlog.get_logger(__name__)

TAIL_SECONDS = 3.0
"""How long to wait for usage and [DONE] once the finish reason is there."""
DRAIN_SECONDS = 0.1
"""How long to wait for the end of the body after [DONE]; it mostly came with it."""


class OpenAIModel:
    """One model of one provider. Cheap to make: connections are shared by all of them."""

    def __init__(
        self,
        profile: ModelProfile,
        endpoint: Endpoint,
        *,
        max_reply_chars: int = MAX_REPLY_CHARS,
    ) -> None:
        self._profile = profile
        self._max_reply_chars = max_reply_chars
        self._dialect = DIALECTS[profile.tool_dialect]
        self._endpoint = endpoint

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyPart, None]:
        """Stream as `engine.provider.model.Model` says. What arrives together is one TextChunk; an
        empty one means that the model works without showing text (it writes a call).

        What a provider said of its failure goes into the log.
        """
        gatherer = gatherer_of(self._dialect, ReplySize(self._max_reply_chars))
        text_filter = self._dialect.new_filter(request)
        with log_failures(self._profile.upstream_id):
            response = await self._open(request)
            async with (
                response_errors(),
                aclosing(response),
                aclosing(payloads(response)) as batches,
            ):
                while (batch := await _next(batches, gatherer)) is not None:
                    text, failure = gatherer.add_all(batch)
                    if text_filter is not None and text:
                        text = text_filter.feed(text)
                        # Text that the filter holds back is a sign of life all the same.
                        gatherer.is_working = True
                    if gatherer.reasoning:
                        yield ReasoningChunk(gatherer.take_reasoning())
                    elif gatherer.is_working and not text:
                        yield TextChunk("")
                    if text:
                        yield TextChunk(text)
                    if failure:
                        raise failure
            finish_reason = gatherer.finish()
            rest = gatherer.end_text()
            if gatherer.reasoning:
                yield ReasoningChunk(gatherer.take_reasoning())
            calls = [*gatherer.calls()]
            if text_filter is not None:
                rest = text_filter.feed(rest) + text_filter.end(called=bool(calls))
            if rest:
                yield TextChunk(rest)
        for call in calls:
            yield CallChunk(call)
        yield ReplyEnd(finish_reason, gatherer.usage, gatherer.provider_fields())

    async def _open(self, request: ModelRequest) -> "httpx2.Response":
        """Send the request; again without parameters that the model refuses, and with messages as it
        wants them."""
        client = await shared_client(self._endpoint)
        headers = {**request.headers, **self._dialect.headers(self._endpoint.api_key)}
        key = (self._endpoint.base_url, self._profile.upstream_id)
        refused = _refused_parameters.setdefault(key, set())
        known = mends = _mends.get(key) or known_mends(*key)
        dropped: set[str] = set()
        while True:
            messages = mends.apply(request.messages)
            dropped |= {name for name, value in self._words(request) if (name, value) in refused}
            left_out = frozenset({each for each in refused if isinstance(each, str)} | dropped)
            fields = self._fields(replace(request, messages=messages), left_out)
            try:
                response = await send(client, self._dialect.path, as_json(fields), headers)
            except ProviderError as error:
                if learnt := _learn_mends(mends, error, messages):
                    mends = learnt
                    continue
                parameter = self._find_refused(error, request, fields)
                if parameter is None or parameter in left_out:
                    raise
                dropped.add(parameter)
                said = dict(self._words(request)).get(parameter)
                if said is None:
                    refused.add(parameter)
                elif len(refused) < _MAX_REFUSED:
                    refused.add((parameter, said))
                logger.warning(
                    "parameter_refused", model=self._profile.upstream_id, parameter=parameter
                )
            else:
                if mends != known:
                    _mends[key] = mends
                return response

    def _words(self, request: ModelRequest) -> list[tuple[str, bytes]]:
        """Return what the request says by words, of which a model may know some and not others."""
        rules = self._profile.parameters
        asked = {**rules.extra, **request.extra, **rules.forced}
        effort = asked.get("reasoning_effort")  # dialects write it under other names
        said = {name: asked.get(name, effort) for name in sorted(BY_WORDS)}
        return [(name, as_json({name: word})) for name, word in said.items() if word is not None]

    def _find_refused(
        self, error: ProviderError, request: ModelRequest, fields: Mapping[str, Any]
    ) -> str | None:
        rules = self._profile.parameters
        asked = {*request.extra, *rules.extra, *rules.forced}
        by_name = refused_by_another_name(error, asked, self._dialect.other_names)
        return by_name or refused_parameter(error, fields, rules)

    def _fields(self, request: ModelRequest, refused: Collection[str]) -> dict[str, Any]:
        asked = {
            **request.extra,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_tokens": request.max_output_tokens,
            "stop": list(request.stop) or None,
            "seed": request.seed,
            "response_format": request.response_format,
            "stream_options": {"include_usage": True},
        }
        sent = sent_parameters(asked, self._profile.parameters, refused)
        if not (self._dialect.allows_parallel_calls and request.tools):  # it would be refused
            sent.pop("parallel_tool_calls", None)
        translated = self._dialect.parameters(sent, request, self._profile)
        fields = {name: value for name, value in translated.items() if name not in refused}
        # Not filtered: messages and tools are no parameters.
        fields |= self._dialect.request_fields(request)
        if "tool_choice" in refused and fields.get("tool_choice") == "auto":
            del fields["tool_choice"]
        return fields | {"model": self._profile.upstream_id, "stream": True}


_MAX_REFUSED = 200
"""What is learnt of one model, as callers choose the words."""

_refused_parameters: dict[tuple[str, str], set[str | tuple[str, bytes]]] = {}
"""(base URL, upstream id) -> parameters that model refused, learnt by asking once per process; of
BY_WORDS with the word, lest one caller's odd word be everybody's loss."""

_mends: dict[tuple[str, str], MessageMends] = {}
"""The same -> what its messages go through, learnt in the same way."""


def _learn_mends(
    mends: MessageMends, error: ProviderError, sent: Sequence[ProviderMessage]
) -> MessageMends | None:
    if error.code != "provider_rejected":
        return None
    return mends.after(f"{error.said} {error.message} {error.parameter}", sent)


async def _next(
    batches: AsyncGenerator[list[bytes], None], gatherer: ReplyGatherer
) -> list[bytes] | None:
    """Return the next payloads, or None at the end.

    Once the reply is whole nothing can spoil it: what is left to come is awaited for
    a moment (a body read to its end leaves the connection usable), faults included.
    """
    import httpx2

    if not gatherer.finish_reason:
        return None if gatherer.is_done else await anext(batches, None)
    try:
        async with asyncio.timeout(DRAIN_SECONDS if gatherer.is_done else TAIL_SECONDS):
            return await anext(batches, None)
    except (TimeoutError, ProviderError, httpx2.HTTPError):
        return None
