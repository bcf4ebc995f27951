"""Cut a block into the pieces that are ranked and shown: single messages, long ones in parts.

A piece is a stretch of the block's text, so no text is kept twice. Pure. Which pieces matter to a
question is decided by `engine.context.ranking`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import chain
from typing import Any, Final, NamedTuple

from engine.context.blocks import SpokenMessage, line_of
from engine.text import tokens
from engine.text.dates import day_words, in_zone, told_words

PIECE_CHARS: Final = 600
"""A longer message is cut at a paragraph or a sentence: about 150 tokens, so that ten of them fit into a
small budget, and a word counts where it stands."""

LEAST_PIECE_CHARS: Final = 200
"""What would leave less of a message is not cut off."""

SAME_TIME_SECONDS: Final = 3_600
"""Messages with less between them need no time of their own when they are shown together."""

OMISSION: Final = "[…]"

_ENDS = (re.compile(r"\n+"), re.compile(r"(?<=[.!?؟])\s+|(?<=[。！？])"), re.compile(r"\s+"))


class MessagePiece(NamedTuple):
    """A stretch of a block's text, `start` to `end`.

    `message` is the place of its message in the block, `said` is in seconds since 1970.
    """

    message: int
    start: int
    end: int
    tokens: int
    words: int
    said: int

    @property
    def said_at(self) -> datetime:
        return datetime.fromtimestamp(self.said, UTC)


FIELDS: Final = len(MessagePiece._fields)
"""The numbers that a piece is stored as, in the order of its fields."""

WHOLE_CHARS: Final = 2**31
"""More than a block has."""

START_AT: Final = 1
END_AT: Final = 2
TOKENS_AT: Final = 3
WORDS_AT: Final = 4


def store_pieces(pieces: Iterable[MessagePiece]) -> list[int]:
    """Return the numbers of all pieces in a row: read in numpy, a thousand pieces cost nothing."""
    return [*chain.from_iterable(pieces)]


def read_pieces(stored: Sequence[int]) -> list[MessagePiece]:
    return [MessagePiece._make(stored[at : at + FIELDS]) for at in range(0, len(stored), FIELDS)]


def cut_run(run: Sequence[SpokenMessage], count_words: Any) -> list[MessagePiece]:
    """Return the pieces of a block's messages, in order; `engine.context.blocks.render` has their text.

    `count_words` counts the words of a text, as an index does.
    """
    pieces: list[MessagePiece] = []
    offset = 0
    for place, message in enumerate(run):
        line = line_of(message)
        if not line:
            continue
        said = int(message.created_at.timestamp())
        for start, end in _spans(line):
            part = line[start:end]
            pieces.append(
                MessagePiece(
                    message=place,
                    start=offset + start,
                    end=offset + end,
                    # And the line end that it is shown with.
                    tokens=tokens.count_text(part) + 1,
                    words=count_words(part),
                    said=said,
                )
            )
        offset += len(line) + 1
    return pieces


def whole_piece(*, block_tokens: int, from_at: datetime) -> MessagePiece:
    """Return the one piece of a block that was not cut yet: all of it."""
    # OpenAI's rule of thumb: 75 words are 100 tokens.
    words = max(block_tokens * 3 // 4, 1)
    return MessagePiece(0, 0, WHOLE_CHARS, block_tokens, words, int(from_at.timestamp()))


def date_words_of(text: str, said_at: datetime) -> set[str]:
    """Return the words by which a piece is found: of the day it was said, of the dates it tells."""
    return {*day_words(said_at.date()), *told_words(text, said_at.date())}


def show(pieces: Iterable[tuple[MessagePiece, str]], zone: tzinfo = UTC) -> str:
    """Return the texts of these pieces of a block in order.

    A mark stands for what is left out between them; the time is given wherever it changes.
    """
    shown = ""
    before: MessagePiece | None = None
    for piece, text in sorted(pieces, key=lambda each: each[0].start):
        if before is not None:
            shown += _between(before, piece, zone)
        shown += text
        before = piece
    return shown


def _between(before: MessagePiece, piece: MessagePiece, zone: tzinfo) -> str:
    is_next = piece.start <= before.end + 1
    if piece.said - before.said >= SAME_TIME_SECONDS:
        time = f"({in_zone(piece.said_at, zone):%Y-%m-%d %H:%M})"
        return f"\n{time}\n" if is_next else f"\n{OMISSION}\n{time}\n"
    if not is_next:
        return f"\n{OMISSION}\n"
    # Messages end with their line, parts of one follow at once.
    return "\n" * (piece.start - before.end)


def _spans(line: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a message, none of them blank, each of at most PIECE_CHARS."""
    start = 0
    while len(line) - start > PIECE_CHARS + LEAST_PIECE_CHARS:
        end = _best_end(line, start)
        if line[start:end].strip():
            yield start, end
        start = end
    yield start, len(line)


def _best_end(line: str, start: int) -> int:
    """Return where to cut: behind the last paragraph, sentence or word of PIECE_CHARS."""
    for end in _ENDS:
        cuts = [
            match.end()
            for match in end.finditer(line, start, start + PIECE_CHARS)
            if match.end() - start >= LEAST_PIECE_CHARS
        ]
        if cuts:
            return cuts[-1]
    return start + PIECE_CHARS
