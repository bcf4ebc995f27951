"""Keep what a provider sends with a reply beyond OpenAI's form, and send it back by one rule.

    with a tool call   extra_content       Gemini signs its calls (google.thought_signature), and answers
                                           400 when a call of the running turn comes back unsigned
    with a message     reasoning_content   DeepSeek and older vLLM: what the model thought
                       reasoning           newer vLLM and OpenRouter: the same
                       reasoning_details   OpenRouter: thoughts as their maker signed or encrypted them
                       thinking_blocks     Anthropic's signed thoughts, items of reasoning of OpenAI's
                                           responses (`engine.provider.dialects`)
                       cache_control       marks where a provider keeps what it has read
    with either        anything else       that OpenAI's form does not name

The rule: a field goes back as it came, to the model that sent it and to no other one, since others
refuse fields that they do not know. A field of a message goes back only within an exchange (a
question, and all up to the next one) that calls tools. There DeepSeek demands it, on every message
and in later turns too; where nothing was called its newer models ignore it, and `deepseek-reasoner`
of old, which knows no tools, answers 400 to any. Some refuse even what they sent: those are learnt
by `engine.message_mends`.

Sources: https://ai.google.dev/gemini-api/docs/thought-signatures,
https://api-docs.deepseek.com/guides/thinking_mode#tool-calls,
https://openrouter.ai/docs/use-cases/reasoning-tokens. Pure: no I/O. Refuses to look inside a field,
and to keep what is said to readers, not to the model (FOR_READERS).
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any, Final, NotRequired, TypedDict, cast

import orjson

from engine.messages import (
    AssistantMessage,
    MessageFields,
    ProviderMessage,
    is_asked,
    is_plain,
)
from engine.tool_calls import CALL_FORM, CallFields

REASONING: Final = "reasoning_content"
WELL_KNOWN: Final = (
    REASONING,
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
    "extra_content",
    "cache_control",
)
"""Fields that are taken of a client that does not say whose they are."""

FOR_READERS: Final = frozenset(
    {
        "annotations",
        "audio",
        "channel",
        "citations",
        "context",
        "executed_tools",
        "images",
        "logprobs",
        "parsed",
        "search_results",
        "token_ids",
    }
)
MESSAGE_FORM: Final = FOR_READERS | {
    "role",
    "content",
    "refusal",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "amber_sender",
}
"""What is no field of a message. `amber_sender` is what Amber says of them to its clients."""

MAX_FIELDS_BYTES: Final = 512_000
"""Of one row. The longest thought of a model (64,000 tokens) is some 300,000 bytes, a signature a
few thousand."""

MAX_REASONING_CHARS: Final = 300_000

Fields = Mapping[str, Any]


class StoredFields(TypedDict):
    """The fields as a row keeps them. `sender` "" means that nobody said whose they are: a client
    brought them, and answers for them."""

    sender: str
    message: NotRequired[MessageFields]
    call: NotRequired[CallFields]


def sender_of(base_url: str, upstream_id: str) -> str:
    """Return the mark of a model at a provider. It tells nobody the address, and is the same
    wherever that model is configured, so that an exported chat goes on elsewhere."""
    return hashlib.sha256(f"{base_url.rstrip('/')} {upstream_id}".encode()).hexdigest()[:16]


class FieldGatherer:
    """Collects the fields that a form does not name from the pieces of a stream, or from a whole
    message."""

    def __init__(self, form: frozenset[str]) -> None:
        self._form = form
        self._pieces: dict[str, list[Any]] = {}

    def add(self, piece: Mapping[str, Any]) -> int:
        """Keep the fields of a piece that are not nested too deeply, and return how many characters it
        holds."""
        all_chars = 0
        for name, value in piece.items():
            if name in self._form or not (value or value == ""):
                continue
            chars, depth = (len(value), 1) if isinstance(value, str) else _measure(value)
            all_chars += chars
            if depth > _MAX_DEPTH:
                continue
            if name not in self._pieces:
                self._pieces[name] = []
                all_chars += _ENTRY_CHARS + len(name)
            self._pieces[name].append(value)
        return all_chars

    def whole(self) -> Fields:
        """Return the fields, storable. Texts are joined once: a thought comes in thousands of
        pieces."""
        return {storable(name): storable(_join(all_)) for name, all_ in self._pieces.items()}


_ENTRY_CHARS: Final = 50
"""What an entry of an object or a list counts beside its texts: it takes some bytes more."""

_MAX_DEPTH: Final = 50
"""How deep a field that is kept may be nested: clients bring it back, in bodies that are 64 deep at most."""


def _measure(value: Any) -> tuple[int, int]:
    """Return how many characters a value counts, and how deep it is nested; it may be of any depth."""
    chars, depth, level = 0, 0, [value]
    while level:
        depth += 1
        inner: list[Any] = []
        for each in level:
            if isinstance(each, str):
                chars += len(each)
                continue
            chars += _ENTRY_CHARS
            if isinstance(each, dict):
                inner += (*each.keys(), *each.values())
            elif isinstance(each, list):
                inner += each
        level = inner
    return chars, depth


def _join(pieces: Sequence[Any]) -> Any:
    if _are_all(str, pieces):
        return "".join(pieces)
    if _are_all(list, pieces):
        return _join_entries(chain.from_iterable(pieces))
    return reduce(merge, pieces)


def _are_all(kind: type, pieces: Sequence[Any]) -> bool:
    return all(isinstance(piece, kind) for piece in pieces)


_GROWING: Final = frozenset({"text", "summary", "data"})


def _join_entries(entries: Iterable[Any]) -> list[Any]:
    """Join the entries of lists; those of one `index` and `type` are pieces of one entry, whose texts
    grow."""
    joined: list[list[Any]] = []
    known: dict[tuple[int, Any], list[Any]] = {}
    for entry in entries:
        index = entry.get("index") if isinstance(entry, dict) else None
        place = (index, str(entry.get("type"))) if isinstance(index, int) else None
        if place is not None and place in known:
            known[place].append(entry)
            continue
        joined.append([entry])
        if place is not None:
            known[place] = joined[-1]
    return [pieces[0] if len(pieces) == 1 else _join_entry(pieces) for pieces in joined]


def _join_entry(pieces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    by_name: dict[str, list[Any]] = {}
    for piece in pieces:
        for name, value in piece.items():
            if value is not None:
                by_name.setdefault(name, []).append(value)
    return {
        name: "".join(values) if name in _GROWING and _are_all(str, values) else values[-1]
        for name, values in by_name.items()
    }


def merge(one: Any, more: Any) -> Any:
    """Continue a value with its next piece: texts and lists grow, objects merge deeply, anything
    else is replaced."""
    if isinstance(one, dict) and isinstance(more, dict):
        return one | {k: merge(one[k], v) if k in one else v for k, v in more.items()}
    if isinstance(one, str) and isinstance(more, str):
        return one + more
    if isinstance(one, list) and isinstance(more, list):
        return one + more
    return one if more is None else more


def storable(value: Any) -> Any:
    """Return the value without what Postgres refuses in JSON: NUL, and halves of characters."""
    if isinstance(value, str):
        whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return whole.replace("\0", "")
    if isinstance(value, dict):
        return {storable(name): storable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [storable(inner) for inner in value]
    return value


def is_too_long(fields: Any) -> bool:
    """Return whether the fields exceed MAX_FIELDS_BYTES, or are nested too deeply."""
    try:
        return len(orjson.dumps(fields)) > MAX_FIELDS_BYTES
    except TypeError:
        return True


def fitting_reasoning(text: str) -> str:
    """Return as much of a thought as a row keeps for people to read, storable."""
    return cast(str, storable(text[:MAX_REASONING_CHARS]))


def reasoning_in(stored: Mapping[str, Any] | None) -> str:
    """Return the thought that stands in the fields of a row, for people to read."""
    message = (stored or {}).get("message")
    thought = message.get(REASONING) if isinstance(message, Mapping) else None
    return fitting_reasoning(thought) if isinstance(thought, str) else ""


def stored_form(sender: str, *, message: MessageFields, call: CallFields) -> StoredFields | None:
    """Return what the row of a reply keeps, or None where there is nothing to keep."""
    if not message and not call:
        return None
    stored: StoredFields = {"sender": sender}
    if message:
        stored["message"] = message
    if call:
        stored["call"] = call
    return stored


def read_stored_form(given: Mapping[str, Any]) -> StoredFields | None:
    """Return the stored form of what a client sent, without what is no field; None if nothing is
    left, or it is too long."""
    sender = given.get("sender")
    if not isinstance(sender, str) or is_too_long(given):
        return None
    message, call = (
        storable(_pick(of_kind, form)) if isinstance(of_kind := given.get(kind), dict) else {}
        for kind, form in (("message", MESSAGE_FORM), ("call", CALL_FORM))
    )
    return stored_form(storable(sender), message=message, call=call)


def brought_fields(
    given: Mapping[str, Any], form: frozenset[str] = MESSAGE_FORM, *, sender: str
) -> Fields:
    """Return the fields of a message, or of a call, that a client sends: those that a provider is
    known for, and with the mark of their sender any."""
    found = _pick(given, form)
    kept = found if sender else {name: found[name] for name in WELL_KNOWN if name in found}
    return cast(Fields, storable(kept))


def _pick(given: Mapping[str, Any], form: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None and name not in form}


def returned_to(sender: str, stored: StoredFields | None) -> tuple[MessageFields, CallFields]:
    """Return the message's and the call's fields that this model may be sent."""
    if stored is None or stored["sender"] not in ("", sender):
        return {}, {}
    return stored.get("message", {}), stored.get("call", {})


# -- The rule for fields of messages --------------------------------------------------------------


def with_fields(message: AssistantMessage, fields: MessageFields) -> AssistantMessage:
    """Return the message with what goes back with it."""
    return cast(AssistantMessage, {**fields, **message}) if fields else message


def fields_of(message: ProviderMessage) -> MessageFields:
    """Return what goes back with this message."""
    if is_plain(message) or message["role"] != "assistant":
        return {}
    return _pick(message, MESSAGE_FORM)


def without_idle_fields(messages: Sequence[ProviderMessage]) -> list[ProviderMessage]:
    """Leave out the fields of messages whose exchange calls no tool."""
    if all(map(is_plain, messages)):
        return [*messages]
    kept: list[ProviderMessage] = []
    for exchange in exchanges(messages):
        kept += exchange if _calls(exchange) else without_fields(exchange)
    return kept


def is_calling(messages: Sequence[ProviderMessage]) -> bool:
    """Return whether the last exchange calls tools: its next message's fields will go back."""
    *_, last = exchanges(messages)
    return _calls(last)


def with_reasoning(messages: Sequence[ProviderMessage]) -> list[ProviderMessage]:
    """Say of answers in exchanges with calls that nothing was thought, where nothing is known of
    it.

    For a provider that demands the field: another model answered, or a client dropped the field.
    """
    filled: list[ProviderMessage] = []
    for exchange in exchanges(messages):
        calls = _calls(exchange)
        for message in exchange:
            if calls and message["role"] == "assistant" and REASONING not in message:
                message = with_fields(message, {REASONING: ""})
            filled.append(message)
    return filled


def merged_fields(messages: Iterable[ProviderMessage]) -> MessageFields:
    """Return the fields of messages that become one."""
    gatherer = FieldGatherer(MESSAGE_FORM)
    for message in messages:
        gatherer.add(fields_of(message))
    return gatherer.whole()


def texts_of(message: ProviderMessage) -> Iterator[str]:
    """Yield the texts among the fields of a message: the model reads them, so they cost tokens.

    Signatures of calls are opaque, and nobody says what they cost.
    """
    for value in fields_of(message).values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _texts_in(value)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(inner, str):
                if name in _READ:
                    yield inner
            else:
                yield from _texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_in(inner)


_READ: Final = frozenset({"text", "thinking", "summary"})


def without_fields(messages: Sequence[ProviderMessage]) -> list[ProviderMessage]:
    """Leave out the fields of all messages."""
    return [_without_fields(message) for message in messages]


def exchanges(messages: Sequence[ProviderMessage]) -> Iterator[Sequence[ProviderMessage]]:
    starts = [n for n, message in enumerate(messages) if n and is_asked(message)]
    for start, end in zip([0, *starts], [*starts, len(messages)], strict=True):
        yield messages[start:end]


def _calls(exchange: Sequence[ProviderMessage]) -> bool:
    return any("tool_calls" in message for message in exchange)


def _without_fields(message: ProviderMessage) -> ProviderMessage:
    fields = fields_of(message)
    if not fields:
        return message  # as it is: it may be marked as produced
    kept = {name: value for name, value in message.items() if name not in fields}
    return cast(ProviderMessage, kept)
