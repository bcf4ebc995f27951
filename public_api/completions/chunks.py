"""Convert a turn to OpenAI's chat completions: whole, or as chunks made of its events.

Pure. What a chunk stream says is what the whole answer says. Formats:
https://platform.openai.com/docs/api-reference/chat/object and …/chat-streaming.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.events import Event, TurnCompleted
from engine.provider_fields import REASONING
from engine.tool_calls import ToolCall, chat_form, function_form
from public_api.openai.chatglm3_functions import write_call
from public_api.openai.growing_answer import (
    AnswerShown,
    Citation,
    GrowingAnswer,
    Row,
    citations,
    show_answer,
)
from public_api.openai.messages import NOBODY, SENDER, sender_mark

Json = dict[str, Any]

_DELTAS: Final = {"text": "content", "reasoning": REASONING}
CUT_SHORT: Final = frozenset({"length", "content_filter"})


@dataclass(frozen=True, slots=True)
class CompletionFormat:
    """What all parts of one answer have in common, and how the client wants them.

    `model` as the client named it; `created` in seconds since 1970. `root` is the address of this
    installation. `client_tools` are the names of the client's functions.
    """

    id: str
    created: int
    model: str
    client_tools: frozenset[str] = frozenset()
    is_legacy: bool = False
    writes_calls: bool = False
    includes_usage: bool = False
    root: str = ""


def completion(
    form: CompletionFormat, messages: Sequence[Row], *, usage: Mapping[str, int], finish_reason: str
) -> Json:
    """Return the whole answer, made of what the turn wrote."""
    answer = show_answer(messages, client_tools=form.client_tools)
    calls = answer.calls[:1] if form.is_legacy else answer.calls
    message: Json = {
        "role": "assistant",
        "content": answer.text or (None if calls else ""),
        "refusal": None,
    }
    if calls and form.is_legacy:
        message["function_call"] = function_form(calls[0])
    elif calls:
        message["tool_calls"] = [chat_form(call) for call in calls]
    cited = citations(messages)
    if cited:
        message["annotations"] = [_annotation(form, each) for each in cited]
    if answer.reasoning:
        message[REASONING] = answer.reasoning
    message |= _fields_beside(form, answer)
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish_reason(form, finish_reason, bool(calls)),
    }
    return {
        **_head(form, "chat.completion"),
        "choices": [choice],
        "usage": usage_object(usage),
    }


class Chunks:
    """Takes a turn's events in order, and turns each into its chunks: mostly one, or none.

    The first chunk names the role. `take` raises TakenBackError; a turn's failure is not told here.
    """

    def __init__(self, form: CompletionFormat) -> None:
        self._form = form
        self._answer = GrowingAnswer(form.client_tools)
        self._calls = 0
        self._legacy_call: ToolCall | None = None
        self._has_begun = False
        self._has_told_fields = False

    def take(self, event: Event) -> Iterator[Json]:
        growth = self._answer.take(event)
        is_over = isinstance(event, TurnCompleted)
        if not self._has_begun and (growth or is_over):
            self._has_begun = True
            begins_with = "" if growth.pieces or not growth.calls else None
            yield self._chunk({"role": "assistant", "content": begins_with, "refusal": None})
        for kind, said in growth.pieces:
            yield self._chunk({_DELTAS[kind]: said})
        fields = _fields_beside(self._form, self._answer.told)
        if fields and not self._has_told_fields and (growth.calls or is_over):
            self._has_told_fields = True
            yield self._chunk(fields)
        for call in growth.calls:
            yield from self._emit_call(call)
        if isinstance(event, TurnCompleted):
            yield from self._end(event)

    def _emit_call(self, call: ToolCall) -> Iterator[Json]:
        index, self._calls = self._calls, self._calls + 1
        if not self._form.is_legacy:
            yield self._chunk({"tool_calls": [{"index": index, **chat_form(call)}]})
        elif index == 0:
            self._legacy_call = call

    def _end(self, event: TurnCompleted) -> Iterator[Json]:
        cited = citations(self._answer.messages)
        if cited:
            yield self._chunk({"annotations": [_annotation(self._form, each) for each in cited]})
        last = self._with_legacy_call()
        yield self._chunk(last, _finish_reason(self._form, event.finish_reason, self._calls > 0))
        if self._form.includes_usage:
            head = _head(self._form, "chat.completion.chunk")
            yield {**head, "choices": [], "usage": usage_object(event.usage)}

    def _with_legacy_call(self) -> Json:
        """Return the last delta: ChatGLM3's client looks for a call beside its finish reason only, and
        OpenAI's finds it there, too."""
        if self._legacy_call is None:
            return {}
        text = {"content": write_call(self._legacy_call)} if self._form.writes_calls else {}
        return {**text, "function_call": function_form(self._legacy_call)}

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = {**_head(self._form, "chat.completion.chunk"), "choices": [choice]}
        # OpenAI's have it in each chunk, null in all but the last.
        return {**chunk, "usage": None} if self._form.includes_usage else chunk


def _fields_beside(form: CompletionFormat, answer: AnswerShown) -> Json:
    """Return what the client must bring back besides, where it has tools. What was thought it has;
    the mark of the sender says how much of that goes back."""
    if not form.client_tools:
        return {}
    fields = dict(answer.fields)
    if not answer.reasoning:
        return fields
    returned = fields.pop(REASONING, None)
    is_last = returned is not None and answer.reasoning[answer.last_thought :] == returned
    start = answer.last_thought if is_last else len(answer.reasoning)
    sender = fields.get(SENDER, NOBODY)
    return fields | {SENDER: sender_mark(sender, start) if sender != NOBODY else NOBODY}


def usage_object(usage: Mapping[str, int]) -> Json:
    """Return the usage of a turn, all its steps together."""
    return {
        "prompt_tokens": usage.get("prompt_tokens", 0),
        "completion_tokens": usage.get("completion_tokens", 0),
        "total_tokens": usage.get("total_tokens", 0),
        "prompt_tokens_details": {"cached_tokens": usage.get("cached_tokens", 0)},
        "completion_tokens_details": {"reasoning_tokens": usage.get("reasoning_tokens", 0)},
    }


def _head(form: CompletionFormat, kind: str) -> Json:
    return {"id": form.id, "object": kind, "created": form.created, "model": form.model}


def _finish_reason(form: CompletionFormat, told: str, has_calls: bool) -> str:
    """Return the reason in OpenAI's closed set; a provider's other words mean "stop"."""
    if told in CUT_SHORT:
        return told
    if has_calls:
        return "function_call" if form.is_legacy else "tool_calls"
    return "stop"


def _annotation(form: CompletionFormat, citation: Citation) -> Json:
    """Return a citation in OpenAI's form for web pages, with the document's address."""
    passage = citation.passage
    document = passage["document"]
    return {
        "type": "url_citation",
        "url_citation": citation.to_wire(form.root),
        "document": {
            **{name: document[name] for name in ("id", "name", "path")},
            **{name: passage[name] for name in ("page", "start", "end")},
        },
    }
