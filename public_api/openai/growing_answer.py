"""Derive what a client sees of a turn: its text, the calls of client tools, its citations.

The turn's own calls and their results are not shown. The texts of its steps follow each other, with
an empty line between them, in whole answers and in growing ones: a stream adds up to the whole
answer. Pure; knows no wire form but Amber's own.

What was shown cannot be taken back here: if a worker died and its text is not said again, the
answer breaks off (`TakenBackError`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from engine.events import Event, Transcript, take
from engine.provider_fields import Fields
from engine.text.citations import marks_in
from engine.tool_calls import ToolCall
from public_api.openai.messages import call_in, message_fields

BETWEEN_STEPS: Final = "\n\n"

Row = Mapping[str, Any]
"""A message in its wire form."""


class TakenBackError(Exception):
    """Text or a call that was shown is no longer part of the answer."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A mark such as [2] in the text, from `start` to `end`, and the passage it stands for."""

    start: int
    end: int
    passage: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerShown:
    """`fields` are what the client must bring back with the last reply."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    fields: Fields = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Growth:
    """What an event added."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.calls)


def show_answer(
    messages: Sequence[Row], texts: Mapping[int, str], *, client_tools: frozenset[str]
) -> AnswerShown:
    """Return the answer in stored messages and in the text of steps that are not stored yet.

    `client_tools` are the names of the client's functions.
    """
    pieces = [*_texts(messages), *(texts[step] for step in sorted(texts))]
    calls = (call_in(row) for row in messages if row["role"] == "tool_call")
    return AnswerShown(
        BETWEEN_STEPS.join(piece for piece in pieces if piece),
        tuple(call for call in calls if call.name in client_tools),
        _fields_of_last_reply(messages),
    )


def citations(messages: Sequence[Row]) -> list[Citation]:
    """Return the marks in the text of these messages, as `show_answer` joins it."""
    found: list[Citation] = []
    offset = 0
    for row in messages:
        text = row["content"] if row["role"] in ("assistant", "tool_call") else ""
        if text:
            found += _marks(text, row["citations"], offset)
            offset += len(text) + len(BETWEEN_STEPS)
    return found


class GrowingAnswer:
    """Takes a turn's events in order, and tells what each adds to the answer."""

    def __init__(self, client_tools: frozenset[str]) -> None:
        self._client_tools = client_tools
        self._seen = Transcript()
        self._told = AnswerShown()

    @property
    def messages(self) -> Sequence[Row]:
        """Return the messages that are stored by now."""
        return self._seen.messages

    @property
    def fields(self) -> Fields:
        """Return what the client must send back with the last reply, as far as it is stored."""
        return self._told.fields

    def take(self, event: Event) -> Growth:
        """Take an event, and return what it adds. Raises TakenBackError."""
        take(self._seen, event)
        now = show_answer(self._seen.messages, self._seen.text, client_tools=self._client_tools)
        before, self._told = self._told, now
        if not now.text.startswith(before.text) or now.calls[: len(before.calls)] != before.calls:
            raise TakenBackError
        return Growth(now.text[len(before.text) :], now.calls[len(before.calls) :])


def _fields_of_last_reply(messages: Sequence[Row]) -> Fields:
    """Return the fields in the reply's first row; other rows only mark whose their calls' fields
    are."""
    last_id: Any = None
    fields: Fields = {}
    for row in messages:
        if row["role"] in ("assistant", "tool_call"):
            reply_id = row["tool_call"]["reply_id"] if row.get("tool_call") else row["id"]
            fields = (
                message_fields(row) if reply_id != last_id else {**message_fields(row), **fields}
            )
            last_id = reply_id
    return fields


def _texts(messages: Sequence[Row]) -> Iterator[str]:
    return (row["content"] for row in messages if row["role"] in ("assistant", "tool_call"))


def _marks(text: str, passages: Sequence[Row], offset: int) -> Iterator[Citation]:
    by_number = {passage["number"]: passage for passage in passages}
    for mark in marks_in(text):
        for number in mark.numbers:
            if number in by_number:
                yield Citation(offset + mark.start, offset + mark.end, by_number[number])
