"""Keep what a provider sends with a reply beyond OpenAI's form, and send it back by one rule.

    with a tool call   extra_content       Gemini signs its calls (google.thought_signature), and answers
                                           400 when a call of the running turn comes back unsigned
    with a message     reasoning_content   DeepSeek and older vLLM: what the model thought

The rule: a field goes back as it came, to the model that sent it and to no other one, since others
refuse fields that they do not know. A field of a message goes back only within an exchange (a
question, and all up to the next one) that calls tools. There DeepSeek demands it, on every message
and in later turns too; where nothing was called its newer models ignore it, and `deepseek-reasoner`
of old, which knows no tools, answers 400 to any.

Sources: https://ai.google.dev/gemini-api/docs/thought-signatures,
https://api-docs.deepseek.com/guides/thinking_mode#tool-calls. Pure: no I/O. Refuses to look inside
a field, and to keep one that is in neither list: what nobody asks for back may be refused.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final, NotRequired, TypedDict, cast

import orjson

from engine.messages import MessageFields, ProviderMessage, is_asked
from engine.tool_calls import CALL_FIELDS, CallFields

MESSAGE_FIELDS: Final = ("reasoning_content",)
REASONING: Final = "reasoning_content"

MAX_FIELDS_BYTES: Final = 512_000
"""Of one row. The longest thought of a model (64,000 tokens) is some 300,000 bytes, a signature a
few thousand."""

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
    """Collects the fields of these names from the pieces of a stream, or from a whole message."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._pieces: dict[str, list[Any]] = {}

    def add(self, piece: Mapping[str, Any]) -> None:
        for name in self._names:
            value = piece.get(name)
            if value is not None:
                self._pieces.setdefault(name, []).append(value)

    def whole(self) -> Any:
        """Return the fields, storable, as the TypedDict of these names.

        Texts are joined once: a thought comes in thousands of pieces.
        """
        return {
            name: storable("".join(pieces) if _are_texts(pieces) else reduce(merge, pieces))
            for name, pieces in self._pieces.items()
        }


def _are_texts(pieces: Sequence[Any]) -> bool:
    return all(isinstance(piece, str) for piece in pieces)


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
    """Return the stored form of what a client sent, without fields that Amber does not send; None
    if nothing is left, or it is too long."""
    sender = given.get("sender")
    if not isinstance(sender, str) or is_too_long(given):
        return None
    message, call = (
        storable(_pick(of_kind, names)) if isinstance(of_kind := given.get(kind), dict) else {}
        for kind, names in (("message", MESSAGE_FIELDS), ("call", CALL_FIELDS))
    )
    return stored_form(storable(sender), message=message, call=call)


def pick_message_fields(given: Mapping[str, Any]) -> MessageFields:
    """Return the fields of a message among what a client sends."""
    return cast(MessageFields, _pick(given, MESSAGE_FIELDS))


def _pick(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if given.get(name) is not None}


def returned_to(sender: str, stored: StoredFields | None) -> tuple[MessageFields, CallFields]:
    """Return the message's and the call's fields that this model may be sent."""
    if stored is None or stored["sender"] not in ("", sender):
        return {}, {}
    return stored.get("message", {}), stored.get("call", {})


# -- The rule for fields of messages --------------------------------------------------------------


def without_idle_fields(messages: Sequence[ProviderMessage]) -> list[ProviderMessage]:
    """Leave out the fields of messages whose exchange calls no tool."""
    kept: list[ProviderMessage] = []
    for exchange in _exchanges(messages):
        kept += exchange if _calls(exchange) else without_fields(exchange)
    return kept


def is_calling(messages: Sequence[ProviderMessage]) -> bool:
    """Return whether the last exchange calls tools: its next message's fields will go back."""
    *_, last = _exchanges(messages)
    return _calls(last)


def with_reasoning(messages: Sequence[ProviderMessage]) -> list[ProviderMessage]:
    """Say of answers in exchanges with calls that nothing was thought, where nothing is known of
    it.

    For a provider that demands the field: another model answered, or a client dropped the field.
    """
    filled: list[ProviderMessage] = []
    for exchange in _exchanges(messages):
        calls = _calls(exchange)
        for message in exchange:
            if calls and message["role"] == "assistant" and REASONING not in message:
                message = {**message, "reasoning_content": ""}
            filled.append(message)
    return filled


def merged_fields(messages: Iterable[ProviderMessage]) -> MessageFields:
    """Return the fields of messages that become one."""
    gatherer = FieldGatherer(MESSAGE_FIELDS)
    for message in messages:
        gatherer.add(message)
    fields: MessageFields = gatherer.whole()
    return fields


def texts_of(message: ProviderMessage) -> Iterator[str]:
    """Yield the texts among the fields of a message: the model reads them, so they cost tokens.

    Signatures of calls are opaque, and nobody says what they cost.
    """
    values = (message.get(name) for name in MESSAGE_FIELDS)
    return (value for value in values if isinstance(value, str))


def without_fields(messages: Sequence[ProviderMessage]) -> list[ProviderMessage]:
    """Leave out the fields of all messages."""
    return [_without_fields(message) for message in messages]


def _exchanges(messages: Sequence[ProviderMessage]) -> Iterator[Sequence[ProviderMessage]]:
    starts = [n for n, message in enumerate(messages) if n and is_asked(message)]
    for start, end in zip([0, *starts], [*starts, len(messages)], strict=True):
        yield messages[start:end]


def _calls(exchange: Sequence[ProviderMessage]) -> bool:
    return any("tool_calls" in message for message in exchange)


def _without_fields(message: ProviderMessage) -> ProviderMessage:
    if not any(name in message for name in MESSAGE_FIELDS):
        return message  # as it is: it may be marked as produced
    kept = {name: value for name, value in message.items() if name not in MESSAGE_FIELDS}
    return cast(ProviderMessage, kept)
