"""Define what every format is converted to: a chat in Amber's own export form, and what got lost.

    messages    [{"id", "parent_id", "role", "content", ...}], parents before children

`ChatBuilder` writes it: texts fit to be stored, nodes that become no message bridged, circles and
orphans resolved. It recurses nowhere, and refuses more than MAX_IMPORTED_MESSAGES.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NotRequired, TypedDict
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from amber.lib.errors import Invalid
from amber.lib.names import plain_name
from chats.messages.tool_calls import (
    MAX_IMPORTED_ARGUMENTS_CHARS,
    StoredToolCall,
    are_arguments_too_long,
)
from chats.models import MAX_MODEL_CHARS
from engine.messages import MessageRole
from engine.provider_fields import MAX_FIELDS_BYTES, storable

MAX_IMPORTED_MESSAGES: Final = 20_000
"""In one chat."""
MAX_THOUGHTS_CHARS: Final = MAX_FIELDS_BYTES // 8
"""However they are written in JSON, they fit into the fields of a row."""
MAX_ALL_THOUGHTS_CHARS: Final = 20_000_000
"""In one chat. Answers that are siblings have the thoughts above them each."""
MAX_NAME_CHARS: Final = 255

MAX_KINDS_NOT_TAKEN: Final = 50
"""Reasons may hold names of the export's; those that come later are counted as OTHERS."""
OTHERS: Final = "others"

NOT_CONTAINED: Final = "The export names it and does not contain it."

_MILLISECONDS_FROM: Final = 1e11
"""Greater numbers are no seconds: those would lie in the year 5138."""
_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_CLOCKS_DIFFER: Final = timedelta(days=1)
_CALL_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_CALL_NAME_CHARS: Final = 64
_MAX_ID_CHARS: Final = 64


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file in a chat: its bytes, or the `reference` by which the export's parts know it."""

    name: str
    reference: str = ""
    data: bytes | None = field(default=None, repr=False)


class ConvertedMessage(TypedDict):
    """A message as exports have it. `thoughts` and `file` only come from other formats; the ids of
    rows only from Amber's, and count where the importer sees the rows."""

    id: str
    parent_id: str | None
    role: str
    content: str
    created_at: NotRequired[datetime | None]
    tool_call: NotRequired[Mapping[str, Any] | None]
    model: NotRequired[str | None]
    thoughts: NotRequired[str]
    file: NotRequired[SentFile]
    assistant_id: NotRequired[Any]
    file_id: NotRequired[Any]
    provider_fields: NotRequired[Mapping[str, Any] | None]


class NotTaken:
    """Counts what a chat loses on its way, by kind and reason."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, kind: str, reason: str, count: int = 1) -> None:
        if not count:
            return
        if (kind, reason) not in self._counts and len(self._counts) >= MAX_KINDS_NOT_TAKEN:
            kind, reason = OTHERS, "The export has more kinds of these than are listed."
        self._counts[kind, reason] += count

    def add_long_arguments(self, count: int) -> None:
        """Count calls that are taken without what they were called with."""
        why = f"They have more than {MAX_IMPORTED_ARGUMENTS_CHARS:,} characters."
        self.add("arguments of a call", why, count)

    def items(self) -> Iterable[tuple[tuple[str, str], int]]:
        return self._counts.items()


@dataclass(frozen=True, slots=True)
class ConvertedChat:
    """A chat of an export. `source_id` is its id there, empty where it has none.

    `assistant_id` is the one it was exported with, or `is_assistant_named` beside it, which must be
    there: only in Amber's own form.
    """

    chat: Mapping[str, Any]
    messages: Sequence[ConvertedMessage]
    source_id: str = ""
    active_leaf_id: str | None = None
    assistant_id: UUID | None = None
    is_assistant_named: bool = False
    not_taken: NotTaken = field(default_factory=NotTaken)


@dataclass(slots=True)
class Node:
    """A place in a source's tree: what it says becomes no message, one, or several in a row.

    `thoughts` go to the answer below it.
    """

    id: str
    parent_id: str | None
    messages: list[dict[str, Any]] = field(default_factory=list)
    thoughts: str = ""


@dataclass(frozen=True, slots=True)
class _Thoughts:
    """Thoughts that no answer has taken yet: those of a node, behind those `above` it."""

    above: "_Thoughts | None"
    text: str
    chars: int


class ChatBuilder:
    """Writes the messages of one chat. Paths of the source are followed as they are."""

    def __init__(self, not_taken: NotTaken) -> None:
        self.not_taken = not_taken
        self._nodes: dict[str, Node] = {}
        self._messages: list[ConvertedMessage] = []
        self._ends: dict[str, tuple[str | None, _Thoughts | None]] = {}
        """By node: the last message on its path, and thoughts that no answer has taken yet."""
        self._thoughts_left_chars = MAX_ALL_THOUGHTS_CHARS

    def add(self, node: Node) -> None:
        """Add a node, in any order. Raises Invalid for too many."""
        if node.id in self._nodes:
            self.not_taken.add("message", "Its id is used twice.", max(len(node.messages), 1))
            return
        self._nodes[node.id] = node
        if len(self._nodes) > MAX_IMPORTED_MESSAGES:
            raise Invalid(f"The chat has more than {MAX_IMPORTED_MESSAGES:,} messages.")

    def build(self, **chat: Any) -> ConvertedChat:
        """Return the chat. `chat` has `name`, `prompt`, `source_id`, `created_at` and
        `active_node_id`, all of which may be None. Raises Invalid for too many messages."""
        children: dict[str | None, list[str]] = {}
        for node in self._nodes.values():
            known = node.parent_id if node.parent_id in self._nodes else None
            children.setdefault(known, []).append(node.id)
        waiting = children.get(None, [])[::-1]
        while waiting:
            node_id = waiting.pop()
            self._write(self._nodes[node_id])
            waiting += children.get(node_id, [])[::-1]
        in_circles = len(self._nodes) - len(self._ends)
        self.not_taken.add("message", "It follows itself: no chat begins with it.", in_circles)
        idle = sum(bool(self._ends[leaf][1]) for leaf in self._ends.keys() - children.keys())
        self.not_taken.add("thoughts", "No answer follows them.", idle)
        if len(self._messages) > MAX_IMPORTED_MESSAGES:
            raise Invalid(f"The chat has more than {MAX_IMPORTED_MESSAGES:,} messages.")
        leaf, _ = self._end_of(chat.get("active_node_id"))
        fields = {"name": plain_name(text_of(chat.get("name")))[:MAX_NAME_CHARS]}
        if prompt := text_of(chat.get("prompt")).strip():
            fields["prompt"] = prompt[: settings.AMBER_MAX_MESSAGE_CHARS]
        return ConvertedChat(
            chat={**fields, "created_at": moment(chat.get("created_at"))},
            messages=self._messages,
            source_id=text_of(chat.get("source_id")),
            active_leaf_id=leaf,
            not_taken=self.not_taken,
        )

    def _write(self, node: Node) -> None:
        last, thoughts = self._end_of(node.parent_id)
        thoughts = _thoughts_below(thoughts, node.thoughts)
        for said in node.messages:
            message = self._fit(said, last)
            if message is None:
                continue
            if thoughts and message["role"] in (MessageRole.ASSISTANT, MessageRole.TOOL_CALL):
                message["thoughts"], thoughts = self._take_thoughts(thoughts), None
            self._messages.append(message)
            last = message["id"]
        self._ends[node.id] = last, thoughts

    def _take_thoughts(self, thoughts: _Thoughts) -> str:
        """Return them as one text, empty when the chat has as many as it may have."""
        kept_chars = min(thoughts.chars, MAX_THOUGHTS_CHARS)
        if kept_chars > self._thoughts_left_chars:
            why = f"A chat keeps {MAX_ALL_THOUGHTS_CHARS:,} characters of them."
            self.not_taken.add("thoughts", why)
            return ""
        self._thoughts_left_chars -= kept_chars
        if thoughts.chars > MAX_THOUGHTS_CHARS:
            why = f"Of an answer's the first {MAX_THOUGHTS_CHARS:,} characters are kept."
            self.not_taken.add("thoughts", why)
        texts = []
        each: _Thoughts | None = thoughts
        while each:
            texts.append(each.text)
            each = each.above
        return text_of("\n\n".join(reversed(texts))[:MAX_THOUGHTS_CHARS])

    def _end_of(self, node_id: Any) -> tuple[str | None, _Thoughts | None]:
        known = isinstance(node_id, str) and node_id in self._ends
        return self._ends[node_id] if known else (None, None)

    def _fit(self, said: Mapping[str, Any], parent_id: str | None) -> ConvertedMessage | None:
        """Return the message, or None if nothing is said in it."""
        content = storable(said.get("content") or "")
        is_empty = not content.strip() and not said.get("tool_call") and not said.get("file")
        if is_empty:
            return None
        most = settings.AMBER_MAX_MESSAGE_CHARS
        if len(content) > most:
            content = content[:most]
            self.not_taken.add("text", f"A message keeps its first {most:,} characters.")
        message: ConvertedMessage = {
            "id": str(len(self._messages)),
            "parent_id": parent_id,
            "role": said["role"],
            "content": content,
            "created_at": moment(said.get("created_at")),
            "model": storable(text_of(said.get("model")))[:MAX_MODEL_CHARS],
        }
        if call := said.get("tool_call"):
            is_too_long = are_arguments_too_long(call)
            self.not_taken.add_long_arguments(is_too_long)
            message["tool_call"] = {**call, "arguments": "{}"} if is_too_long else call
        if file := said.get("file"):
            message["file"] = file
        return message


def _thoughts_below(above: _Thoughts | None, text: str) -> _Thoughts | None:
    """Return the thoughts with these behind them. What no answer would keep is not joined."""
    if not text or (above and above.chars > MAX_THOUGHTS_CHARS):
        return above
    text = text[: MAX_THOUGHTS_CHARS + 1]
    return _Thoughts(above, text, len(text) + (above.chars + len("\n\n") if above else 0))


# -- Values of sources, whatever they are ---------------------------------------------------------


def text_of(value: Any) -> str:
    """Return a text that can be stored; empty for what is none."""
    found: str = storable(value) if isinstance(value, str) else ""
    return found


def dict_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def dicts_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; nothing for what is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def moment(value: Any) -> datetime | None:
    """Return the time of seconds or milliseconds since 1970, or of ISO 8601.

    None for anything else, and for times before 1970 or in the future.
    """
    try:
        found = _moment(value)
        return found if found and _EARLIEST < found < timezone.now() + _CLOCKS_DIFFER else None
    except (ValueError, OverflowError, OSError):
        return None


def _moment(value: Any) -> datetime | None:
    if isinstance(value, str):
        found = datetime.fromisoformat(value)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1_000 if value > _MILLISECONDS_FROM else value
        return datetime.fromtimestamp(seconds, UTC)
    return None


def call_of(call_id: Any, name: Any, arguments: Any) -> StoredToolCall:
    """Return a call that providers accept: a plain name, and arguments that are a JSON object."""
    plain = _CALL_NAME.sub("_", text_of(name))[:_MAX_CALL_NAME_CHARS]
    return {
        "id": text_of(call_id)[:_MAX_ID_CHARS] or "call",
        "name": plain or "tool",
        "arguments": _arguments_text(arguments),
        "reply_id": None,
    }


def _arguments_text(arguments: Any) -> str:
    try:
        if isinstance(arguments, str) and isinstance(json.loads(arguments), dict):
            return text_of(arguments)
    except (ValueError, RecursionError):
        pass  # it is no JSON: the tool's input
    given = arguments if isinstance(arguments, dict) else {"input": arguments} if arguments else {}
    try:
        return json.dumps(storable(given), ensure_ascii=False)
    except RecursionError:
        return "{}"


def call_of_result(call: StoredToolCall) -> StoredToolCall:
    """Return what a result says of its call."""
    return {**call, "arguments": ""}
