"""Gather a reply from the events of a provider's stream (`engine.provider.event_lines`).

Pure: no I/O and no client library. Format:
https://platform.openai.com/docs/api-reference/chat-streaming. Compatible servers differ in small ways:
comments say what is tolerated, and anything else raises ProviderError("provider_malformed").
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import orjson

from engine.messages import MessageFields
from engine.provider.dialects.dialect import Dialect, call_pieces
from engine.provider.dialects.event_reader import EventReader
from engine.provider.event_lines import DONE
from engine.provider.faults import fault, fault_of_event, fault_of_list
from engine.provider.finish_reasons import read_reason
from engine.provider.model import ProviderError, Usage, usage_of
from engine.provider.reasoning import ThinkTags, split_parts
from engine.provider.reply_size import ReplySize
from engine.provider_fields import MESSAGE_FORM, FieldGatherer
from engine.tool_calls import CALL_FORM, ToolCall

MAX_TRIED_CHARS: Final = 4_000_000
"""How much of a call's arguments is parsed, anew with each piece that may begin another call: a few
milliseconds of CPU. Whole arguments repeated as often as a reply may have calls are far below."""


@dataclass(slots=True)
class _CallInMaking:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    fields: FieldGatherer = field(default_factory=lambda: FieldGatherer(CALL_FORM))
    chars: int = 0
    tried_chars: int = 0

    def add(self, arguments: str) -> None:
        self.arguments.append(arguments)
        self.chars += len(arguments)

    def is_complete(self) -> bool:
        """Return whether its arguments are a whole object, which nothing can continue."""
        last = next((piece for piece in reversed(self.arguments) if piece.strip()), "")
        if not last.rstrip().endswith("}"):
            return False
        self.tried_chars += self.chars
        if self.tried_chars > MAX_TRIED_CHARS:
            return False
        try:
            orjson.loads("".join(self.arguments))
        except orjson.JSONDecodeError:
            return False
        return True


class ReplyGatherer:
    """Gathers the parts of a reply; `add` takes one event and returns the text it adds.

    What the event adds of reasoning waits in `reasoning` until `take_reasoning` fetches it.
    `pieces_in` is the dialect's.
    """

    def __init__(
        self,
        pieces_in: Callable[[Mapping[str, Any]], Sequence[Any]] = call_pieces,
        size: ReplySize | None = None,
    ) -> None:
        self._call_pieces = pieces_in
        self._size = size or ReplySize()
        self.finish_reason = ""
        self.usage: Usage | None = None
        self.is_working = False
        """Whether the last event was a sign of work that shows no text (a call, a thought)."""
        self.is_done = False
        """Whether [DONE] came."""
        self.reasoning = ""
        self._tags: ThinkTags | None = ThinkTags()
        self._fields = FieldGatherer(MESSAGE_FORM)
        self._half = self._half_thought = ""
        self._calls: list[_CallInMaking] = []
        self._by_index: dict[int, _CallInMaking] = {}
        self._in_this_event: list[_CallInMaking] = []

    def take_reasoning(self) -> str:
        taken, self.reasoning = self.reasoning, ""
        return taken

    def end_text(self) -> str:
        """Return the text that was held back when the reply ended."""
        if self._tags is None:
            return ""
        thought, said = self._tags.flush()
        self.reasoning += thought
        return said

    def add_all(self, payloads: list[bytes]) -> tuple[str, ProviderError | None]:
        """Return the text that these payloads add, and the fault that cut them short: text before
        it was received and counts. A fault after the finish reason is ignored; that the reply was too
        long is not, since text of it is missing."""
        text = ""
        for payload in payloads:
            if payload == DONE:
                self.is_done = True
                break
            try:
                text += self.add_json(payload) if payload else ""
            except ProviderError as error:
                self.is_done = bool(self.finish_reason)
                return text, None if self.finish_reason else error
            if self._size.is_exceeded:
                return text, fault("reply_too_long")
        return text, None

    def add_json(self, payload: bytes) -> str:
        """Add an event of JSON text. Raises ProviderError."""
        try:
            event = orjson.loads(payload)
        except orjson.JSONDecodeError:
            return self._add_halves(payload)
        return self.add(event)

    def _add_halves(self, payload: bytes) -> str:
        """Add an event with half a character, which orjson refuses, and join it with the next half.

        Servers that count in UTF-16 cut an emoji in two: `\\ud83d` here, `\\ude00` in the next
        event.
        """
        try:
            event = json.loads(payload)
        except (ValueError, RecursionError):
            raise fault("provider_malformed") from None
        before = self.take_reasoning()
        text, self._half = _split_half(self._half + self.add(event))
        thought, self._half_thought = _split_half(self._half_thought + self.reasoning)
        self.reasoning = before + thought
        return text

    def add(self, event: Any) -> str:
        """Take a chunk (or a whole `chat.completion`). Raises ProviderError, also for an error
        that the provider put into the stream."""
        self.is_working = False
        if not isinstance(event, dict):
            raise fault_of_list(event) if isinstance(event, list) else fault("provider_malformed")
        if event.get("error"):
            raise fault_of_event(event["error"])
        if event.get("usage"):
            self.usage = usage_of(event["usage"]) or self.usage
        elif "choices" not in event:
            return self._add_without_choices(event)
        choices = event.get("choices") or []
        if not isinstance(choices, list):
            raise fault("provider_malformed")
        text = ""
        for choice in choices:
            text += self._add_choice(choice)
        if choices and self.finish_reason:
            self._find_usage(event, choices[0])
        return text

    def _add_without_choices(self, event: dict[str, Any]) -> str:
        """Pass over a sign of life (`{"type": "ping"}`). Raises ProviderError for anything else."""
        if event.get("object") == "error" or event.get("type") == "error":
            raise fault_of_event(event)
        if event.get("type") == "ping":
            return ""
        raise fault("provider_malformed")

    def _find_usage(self, event: dict[str, Any], choice: dict[str, Any]) -> None:
        """Take counts that stand where OpenAI has none: Groq's `x_groq`, Moonshot's choice."""
        if self.usage is None:
            x_groq = event.get("x_groq")
            counts = x_groq.get("usage") if isinstance(x_groq, dict) else choice.get("usage")
            self.usage = usage_of(counts)

    def _add_choice(self, choice: Any) -> str:
        if not isinstance(choice, dict):
            raise fault("provider_malformed")
        if choice.get("index"):  # another answer: one was asked for
            return ""
        delta = choice.get("delta")
        if delta is None:
            delta = choice.get("message") or {}
        finish_reason = choice.get("finish_reason")
        if not isinstance(delta, dict) or not isinstance(finish_reason, str | None):
            raise fault("provider_malformed")
        if finish_reason:
            self.finish_reason = finish_reason
        text = delta.get("content") or delta.get("refusal") or ""
        if not isinstance(text, str):
            text = self._text_in(text)
        if "\0" in text:  # no database takes it, and no reader misses it
            text = text.replace("\0", "")
        text = self._size.take(text)
        # Most deltas are text and nothing else.
        if len(delta) > 1 or not text:
            if _is_thought(delta):  # Gemini says so of its content
                self._think(self._untag(text))
                delta = {n: v for n, v in delta.items() if n not in ("content", "extra_content")}
                text = ""
            self._add_rest(delta)
        return self._untag(text) if self._tags is not None and text else text

    def _text_in(self, content: Any) -> str:
        """Return what is said in a content that is a list of parts. Raises ProviderError."""
        if not isinstance(content, list):
            raise fault("provider_malformed")
        thought, said = split_parts(content)
        self._think(self._size.take(thought))
        return said

    def _untag(self, text: str) -> str:
        """Return what is said of this text while it may begin with reasoning in tags."""
        if self._tags is None:
            return text
        thought, said = self._tags.feed(text)
        if thought:
            self._think(thought)
        if self._tags.is_done:
            self._tags = None
        return said

    def _think(self, thought: Any) -> None:
        if isinstance(thought, str) and thought:
            self.is_working = True
            self.reasoning += thought.replace("\0", "")

    def _add_rest(self, delta: dict[str, Any]) -> None:
        """Add the parts of a delta that are no text: calls, thoughts, other fields."""
        if pieces := self._call_pieces(delta):
            self.is_working = True
            self._in_this_event = []
            for piece in pieces:
                self._add_call(piece)
        self._think(delta.get("reasoning_content") or delta.get("reasoning"))
        self._size.count(self._fields.add(delta))

    def _add_call(self, piece: Any) -> None:
        if not isinstance(piece, dict):
            raise fault("provider_malformed")
        function = piece.get("function") or {}
        if not isinstance(function, dict):
            raise fault("provider_malformed")
        name, call_id = function.get("name") or "", piece.get("id") or ""
        arguments = function.get("arguments")
        if arguments is None:
            arguments = ""
        elif isinstance(arguments, dict):  # some send the object itself
            arguments = orjson.dumps(arguments).decode()
        if not (isinstance(name, str) and isinstance(call_id, str) and isinstance(arguments, str)):
            raise fault("provider_malformed")
        call = self._slot(piece.get("index"), call_id, name, arguments)
        if call is None:
            return
        self._in_this_event.append(call)
        call.id = call.id or call_id
        call.name = call.name or name
        call.add(arguments)
        self._size.count(len(arguments) + len(name) + len(call_id) + call.fields.add(piece))

    def _slot(self, index: Any, call_id: str, name: str, arguments: str) -> _CallInMaking | None:
        """Return the call that a piece belongs to; None if it repeats a whole call.

        Pieces go by index. Without an index the id decides; a name begins a new call and everything
        else continues the last one. As some servers give several calls one index, or one id, a
        piece also begins a new call if it has another id and a name, if the call it would go to is
        whole and another object begins, and if both have a name and came in one event.
        """
        if isinstance(index, int):
            call = self._by_index.get(index)
        elif call_id or name:
            call = next((c for c in self._calls if call_id and c.id == call_id), None)
        else:
            call = self._calls[-1] if self._calls else None
        if call is not None and self._is_whole_again(call, call_id, name, arguments):
            return None
        if call is None or self._begins_another(call, call_id, name, arguments):
            begun = _CallInMaking(name="" if call is None or name else call.name)
            self._calls.append(begun)
            self._size.count_call(len(self._calls))
            if isinstance(index, int):
                self._by_index[index] = begun
            return begun
        return call

    def _is_whole_again(self, call: _CallInMaking, call_id: str, name: str, arguments: str) -> bool:
        """Return whether the piece says once more what is there: with the same id, all of it."""
        is_same = bool(call_id) and call_id == call.id and name == call.name
        # One character that comes again is rather the next piece.
        is_as_long = len(arguments) > 1 and len(arguments) == call.chars
        return is_same and is_as_long and arguments == "".join(call.arguments)

    def _begins_another(self, call: _CallInMaking, call_id: str, name: str, arguments: str) -> bool:
        if name and call_id and call.id and call.id != call_id:
            return True
        if name and call.name and any(call is known for known in self._in_this_event):
            return True
        if name and call.name and name != call.name:
            return True
        return arguments.lstrip()[:1] == "{" and call.is_complete()

    def calls(self) -> Iterator[ToolCall]:
        """Yield the whole calls, in the order they began, with new ids for missing or repeated
        ones.

        Raises ProviderError when a call has no name.
        """
        seen: set[str] = set()
        for call in self._calls:
            if not (call.name or any(call.arguments)):
                continue  # announced, and never written
            if not call.name:
                raise fault("provider_malformed")
            call_id = _storable(call.id)
            if not call_id or call_id in seen:
                call_id = f"call_{uuid4().hex[:24]}"
            seen.add(call_id)
            arguments = _storable("".join(call.arguments)).strip() or "{}"
            yield ToolCall(
                call_id, _storable(call.name), arguments, provider_fields=call.fields.whole()
            )

    def provider_fields(self) -> MessageFields:
        """Return what came with the message and goes back with it (`engine.provider_fields`)."""
        return self._fields.whole()

    def finish(self) -> str:
        """Return the finish reason in today's words; "tool_calls" whenever a reply simply ends with
        calls (servers say "stop" or "function_call"). Raises ProviderError if none came, or if it says that
        the reply was cut off."""
        if not self.finish_reason:
            raise fault("provider_lost")
        reason = read_reason(self.finish_reason)
        is_calling = any(call.name for call in self._calls)
        if is_calling and reason in ("stop", "function_call", "tool_calls"):
            return "tool_calls"
        return reason


class TranslatingGatherer(ReplyGatherer):
    """Gathers a reply from events of another API, which a reader turns into chunks."""

    def __init__(self, reader: EventReader, size: ReplySize | None = None) -> None:
        super().__init__(size=size)
        self._tags = None  # reasoning is told apart in these
        self._reader = reader

    def add(self, event: Any) -> str:
        """Take an event, or a whole answer. Raises ProviderError."""
        if not isinstance(event, dict) or (event.get("error") and "output" not in event):
            return super().add(event)
        text, is_working = "", False
        for chunk in self._reader.read(event):
            text += super().add(chunk)
            is_working = is_working or self.is_working
        self.is_working = is_working
        self.is_done = bool(self.finish_reason)  # nothing that matters comes after
        return text


def gatherer_of(dialect: Dialect, size: ReplySize | None = None) -> ReplyGatherer:
    if dialect.new_reader is None:
        return ReplyGatherer(dialect.call_pieces, size)
    return TranslatingGatherer(dialect.new_reader(), size)


def _storable(text: str) -> str:
    return _mend_surrogates(text).replace("\0", "")


def _mend_surrogates(text: str) -> str:
    """Join halves of one character; a half that stays alone becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _split_half(text: str) -> tuple[str, str]:
    """Return the text, and half a character at its end, which the next event may complete."""
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return _mend_surrogates(text.removesuffix(half) if half else text), half


def _is_thought(delta: Mapping[str, Any]) -> bool:
    extra = delta.get("extra_content")
    of_google = extra.get("google") if isinstance(extra, dict) else None
    return isinstance(of_google, dict) and of_google.get("thought") is True
