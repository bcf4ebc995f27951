"""Derive what a client sees of a turn: its text and reasoning, the calls of client tools, its citations.

The turn's own calls and their results are not shown. The texts of its steps follow each other, with
an empty line between them, in whole answers and in growing ones: a stream adds up to the whole
answer. Reasoning is alike. Pure; knows no wire form but Amber's own.

What was shown cannot be taken back here: if a worker died and its text is not said again, the
answer breaks off (`TakenBackError`). Reasoning that was taken back stands, and what comes instead
follows it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from engine.events import Event, Transcript, apply_event
from engine.provider_fields import Fields
from engine.text.citations import marks_in
from engine.tool_calls import ToolCall
from public_api.openai.messages import call_in, message_fields

BETWEEN_STEPS: Final = "\n\n"

NOTHING: Final[Mapping[int, str]] = {}

Piece = tuple[Literal["reasoning", "text"], str]

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

    def to_wire(self, root: str) -> dict[str, Any]:
        """Return it as OpenAI has citations of web pages, with the document's address at this root."""
        document = self.passage["document"]
        return {
            "start_index": self.start,
            "end_index": self.end,
            "title": document["name"],
            "url": f"{root}/api/v1/documents/{document['id']}/",
        }


@dataclass(frozen=True, slots=True)
class AnswerShown:
    """`fields` are what the client must bring back with the last reply, whose reasoning begins at
    `last_thought` of all `reasoning`. `speaks_first`: some text comes before all reasoning."""

    text: str = ""
    reasoning: str = ""
    last_thought: int = 0
    speaks_first: bool = False
    calls: tuple[ToolCall, ...] = ()
    fields: Fields = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Growth:
    """What an event added: pieces of reasoning and text, in the order of their steps, then calls."""

    pieces: tuple[Piece, ...] = ()
    calls: tuple[ToolCall, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pieces or self.calls)


def show_answer(
    messages: Sequence[Row],
    texts: Mapping[int, str] = NOTHING,
    thoughts: Mapping[int, str] = NOTHING,
    *,
    client_tools: frozenset[str],
) -> AnswerShown:
    """Return the answer in stored messages, and in text and reasoning of steps that are not stored
    yet.

    `client_tools` are the names of the client's functions.
    """
    pieces = _pieces(messages, texts, thoughts)
    calls = (call_in(row) for row in messages if row["role"] == "tool_call")
    reasoning = _join(pieces, "reasoning")
    last = [said for kind, said in pieces if kind == "reasoning"][-1:]
    return AnswerShown(
        _join(pieces, "text"),
        reasoning,
        len(reasoning) - sum(map(len, last)),
        bool(pieces) and pieces[0][0] == "text",
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
    def told(self) -> AnswerShown:
        """Return the answer so far. What the client must send back is known once it is stored."""
        return self._told

    def take(self, event: Event) -> Growth:
        """Take an event, and return what it adds. Raises TakenBackError."""
        apply_event(self._seen, event)
        seen = self._seen
        tools = self._client_tools
        now = show_answer(seen.messages, seen.text, seen.reasoning, client_tools=tools)
        before, self._told = self._told, now
        if not now.text.startswith(before.text) or now.calls[: len(before.calls)] != before.calls:
            raise TakenBackError
        known = len(before.reasoning)
        if not now.reasoning.startswith(before.reasoning):
            known = len(now.reasoning)
        pieces = _pieces(seen.messages, seen.text, seen.reasoning)
        new = _beyond(pieces, {"text": len(before.text), "reasoning": known})
        return Growth(tuple(new), now.calls[len(before.calls) :])


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


def _pieces(
    messages: Sequence[Row], texts: Mapping[int, str], thoughts: Mapping[int, str]
) -> list[Piece]:
    """Return reasoning and text of each step, in order; none is empty."""
    said: list[Piece] = []
    for row in messages:
        if row["role"] in ("assistant", "tool_call"):
            said += [("reasoning", row.get("reasoning", "")), ("text", row["content"])]
    for step in sorted({*texts, *thoughts}):
        said += [("reasoning", thoughts.get(step, "")), ("text", texts.get(step, ""))]
    return [piece for piece in said if piece[1]]


def _join(pieces: Sequence[Piece], wanted: str) -> str:
    return BETWEEN_STEPS.join(said for kind, said in pieces if kind == wanted)


def _beyond(pieces: Sequence[Piece], known: Mapping[str, int]) -> Iterator[Piece]:
    """Yield what pieces hold behind so many characters of their kind, with what stands between."""
    ends = dict.fromkeys(known, 0)
    for kind, said in pieces:
        whole = BETWEEN_STEPS + said if ends[kind] else said
        start, ends[kind] = ends[kind], ends[kind] + len(whole)
        if new := whole[max(known[kind] - start, 0) :]:
            yield kind, new


def _marks(text: str, passages: Sequence[Row], offset: int) -> Iterator[Citation]:
    by_number = {passage["number"]: passage for passage in passages}
    for mark in marks_in(text):
        for number in mark.numbers:
            if number in by_number:
                yield Citation(offset + mark.start, offset + mark.end, by_number[number])
