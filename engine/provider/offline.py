"""Answer without a provider: quote what was given, say so, and call tools on order.

Pure and deterministic, so that a fresh installation, tests and demonstrations work without a key.
It does not understand anything: sentences are picked by the words they share with the question.

`/tool_name {json}` as the last user message calls that tool; several such lines call at once.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass

import orjson

from engine.messages import ProviderMessage, calls_in, is_asked
from engine.provider.model import (
    CallChunk,
    ModelProfile,
    ModelRequest,
    ReplyEnd,
    ReplyPart,
    TextChunk,
    Usage,
    as_json,
)
from engine.text.lexical import features, overlap
from engine.tool_calls import ToolCall

OFFLINE_PROFILE = ModelProfile("offline")
INTRODUCTION = "This is Amber's built-in offline model: it only quotes what it was given."
MAX_QUOTES = 3
MAX_QUOTE_CHARS = 400
MIN_OVERLAP = 0.2
"""Share of the question's words a sentence must hold: below, common words alone match."""
MIN_OVERLAP_OF_PASSAGE = 0.1
"""The same in a passage that a search has found for this question: one rare word of eight is enough."""

_SENT_AT = re.compile(r"^\[Sent at [^\]\n]*\]\n", re.MULTILINE)
_MARK = re.compile(r"^<data-[0-9a-f]{1,64}>\n|\n</data-[0-9a-f]{1,64}>$", re.MULTILINE)
_COMMAND = re.compile(r"/([\w-]{1,64})[ \t]*+(\{.*\}|)\s*+", re.DOTALL)
# Only the first beginning is tried (`(?>`): where it has no end, the later ones have none either.
_ASKED = re.compile(r"\A(?>.*?<question>\n)(.*)\n</question>\s*+\Z", re.DOTALL)
_CONTEXT = re.compile(r"\A(?>.*?<context>\n)(.*?)\n</context>", re.DOTALL)
_CONTEXT_PASSAGE = re.compile(r"^(\d{1,6})\. File Path: .*\nContent: ", re.MULTILINE)
_PASSAGE = re.compile(r"^\[(\d{1,6})\] .*$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_BULLET = re.compile(r"[-*•] +")
_PIECE = re.compile(r"(?:\A\s++)?+\S++\s*+")


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence and, where it is from a numbered passage, that number."""

    text: str
    passage: int | None = None


class OfflineModel:
    """A model that needs no provider. `delay_seconds` is the pause between words."""

    def __init__(
        self, profile: ModelProfile = OFFLINE_PROFILE, *, delay_seconds: float = 0
    ) -> None:
        self._profile = profile
        self._delay_seconds = delay_seconds

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyPart, None]:
        calls = calls_ordered(request)
        prompt_tokens = max(1, len(as_json({"messages": list(request.messages)})) // 4)
        if calls:
            for call in calls:
                yield CallChunk(call)
            yield ReplyEnd("tool_calls", Usage(prompt_tokens, 10 * len(calls)))
            return
        pieces = _PIECE.findall("{}" if request.response_format else answer(request))
        limit = request.max_output_tokens or len(pieces)
        for piece in pieces[:limit]:
            await asyncio.sleep(self._delay_seconds)
            yield TextChunk(piece)
        finish_reason = "stop" if len(pieces) <= limit else "length"
        yield ReplyEnd(finish_reason, Usage(prompt_tokens, min(len(pieces), limit)))


def calls_ordered(request: ModelRequest) -> list[ToolCall]:
    """Return the calls that the last user message orders, unless results came since.

    Empty when anything in the message is no order, or names a tool that is not offered. Ids
    depend on the whole conversation, so that a repeated order gets another id.
    """
    last = _last_user(request.messages)
    if _results(request.messages[last + 1 :]) or request.tool_choice == "none":
        return []
    text = question_of(request.messages).strip()
    whole = _COMMAND.fullmatch(text)
    orders: list[re.Match[str] | None] = [whole] if whole and _is_json(whole[2]) else []
    orders = orders or [  # bad JSON goes to the tool, as a model's would
        _COMMAND.fullmatch(line) for line in text.splitlines() if line.strip()
    ]
    offered = {tool.name for tool in request.tools}
    seed = hashlib.sha256(as_json({"messages": list(request.messages)})).hexdigest()[:16]
    calls = [
        ToolCall(f"call_{seed}_{i}", order[1], order[2].strip() or "{}")
        for i, order in enumerate(orders)
        if order and order[1] in offered
    ]
    return calls if len(calls) == len(orders) else []


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return False
    return True


def answer(request: ModelRequest) -> str:
    """Return the whole text: results of tools if there are any, else quotes, else what to do."""
    last = _last_user(request.messages)
    results = _results(request.messages[last + 1 :])
    if results:
        return "\n\n".join([INTRODUCTION, *(f"{name} answered:\n{text}" for name, text in results)])
    quotes = best_quotes(question_of(request.messages), candidates(request.messages))
    if quotes:
        lines = [f"- {q.text}" + (f" [{q.passage}]" if q.passage else "") for q in quotes]
        return f"{INTRODUCTION}\n\n" + "\n".join(lines)
    words = f"{INTRODUCTION} It was given nothing about this."
    tools = ", ".join(f"`/{tool.name} {{}}`" for tool in request.tools)
    return f"{words} It calls a tool when told to: {tools}." if tools else words


def question_of(messages: Sequence[ProviderMessage]) -> str:
    """Return the last user message, without its time (and what was merged in front of it).

    Of a question to a library (`engine.history.prompt.ask_prompt`) the question alone.
    """
    last = _last_user(messages)
    said = _SENT_AT.split(_text(messages[last]))[-1] if last >= 0 else ""
    asked = _ASKED.search(said)
    return asked[1] if asked else said


def candidates(messages: Sequence[ProviderMessage]) -> Iterator[Quote]:
    """Yield sentences that may answer, best sources first: numbered passages, other recalled text
    (in a system message behind the first, or as a list item), earlier words of the user, and what
    stands in front of the question, as files do."""
    last = _last_user(messages)
    rest: list[str] = []
    if last >= 0 and (context := _CONTEXT.search(_text(messages[last]))):
        yield from _split_passages(context[1], _CONTEXT_PASSAGE)[1]
    for i, message in enumerate(messages):
        if message["role"] == "system":
            before, passages = _split_passages(_text(message), _PASSAGE)
            yield from passages
            lines = before.splitlines()
            rest += lines if i else [line for line in lines if _BULLET.match(line)]
    rest += [_SENT_AT.sub("", _text(m)) for m in messages[:last] if is_asked(m)]
    rest += _SENT_AT.split(_text(messages[last]))[:-1] if last >= 0 else []
    for text in rest:
        yield from (Quote(_BULLET.sub("", s, count=1)) for s in _sentences(text))


def _split_passages(text: str, head: "re.Pattern[str]") -> tuple[str, list[Quote]]:
    """Return the text in front of the first passage, and the sentences of the passages."""
    heads = list(head.finditer(text))
    if not heads:
        return text, []
    ends = [*(found.start() for found in heads[1:]), len(text)]
    quotes = [
        Quote(sentence, int(found[1]))
        for found, end in zip(heads, ends, strict=True)
        for sentence in _sentences(text[found.end() : end])
    ]
    return text[: heads[0].start()], quotes


def best_quotes(question: str, among: Iterator[Quote]) -> list[Quote]:
    """Return at most MAX_QUOTES, nearest to the question first; earlier sources win."""
    wanted = features(question)
    seen: dict[str, tuple[float, Quote]] = {}
    for quote in among:
        score = overlap(wanted, quote.text)
        enough = MIN_OVERLAP_OF_PASSAGE if quote.passage else MIN_OVERLAP
        if score >= enough and quote.text not in seen:
            seen[quote.text] = (score, quote)
    ranked = sorted(seen.values(), key=lambda pair: -pair[0])
    return [quote for _, quote in ranked[:MAX_QUOTES]]


def _sentences(text: str) -> list[str]:
    parts = (part.strip() for part in _SENTENCE_END.split(text))
    return [part[:MAX_QUOTE_CHARS] for part in parts if part]


def _last_user(messages: Sequence[ProviderMessage]) -> int:
    """Return the position of the last message of a person, or -1."""
    return max((i for i, m in enumerate(messages) if is_asked(m)), default=-1)


def _results(messages: Sequence[ProviderMessage]) -> list[tuple[str, str]]:
    """Return (name of the tool, what it answered) in order."""
    calls = (call for m in messages for call in calls_in(m))
    names = {call["id"]: call["function"]["name"] for call in calls}
    tools = (m for m in messages if m["role"] == "tool")
    return [(names.get(m["tool_call_id"], "a tool"), _text(m)) for m in tools]


def _text(message: ProviderMessage) -> str:
    """Return the message's text without the marks around what strangers wrote."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part["text"] for part in content if part["type"] == "text")
    return _MARK.sub("", content)
