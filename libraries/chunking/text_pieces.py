"""Split a text into a stream of pieces, of which chunks are put together.

Pieces follow one another without gaps, from the first character to the last. A piece is a sentence,
a heading, a list item, a row of a table, a line of code, or a whole table or code block where that
fits into a chunk; what is longer than a chunk is cut at spaces, and where there are none, anywhere.

Reads Markdown as CommonMark does (https://spec.commonmark.org/0.31.2/), as far as cutting needs it.
Holds one block at a time, so that memory does not grow with the text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from libraries.chunking.text_blocks import Block, BlockKind, blocks_of

Count = Callable[[str], int]


class Boundary(IntEnum):
    """How strong the boundary in front of a piece is; the smaller, the better to cut there."""

    HEADING = 1
    BLOCK = 2
    LINE = 3
    SENTENCE = 4
    WORD = 5
    BEHIND_HEADING = 6
    """A cut here would leave a heading without its text."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The stretch `text[start:end]` with the white space behind it, under the headings `path`."""

    start: int
    end: int
    tokens: int
    boundary: Boundary
    path: tuple[str, ...]
    kind: BlockKind


_MOST_CHARS_PER_TOKEN: Final = 20
"""Longer pieces are cut before they are counted, so that no character is counted more than three
times. Text has 1 to 5 characters a token; runs of spaces have more."""

_BYTES_PER_CHARACTER: Final = 4
"""The most that UTF-8 takes. A token holds at least one byte, so a window of a fourth as many
characters as tokens surely fits."""

# What may end a sentence, with the marks that close it. Every match is consumed, so that a run of
# full stops costs its length and not its square.
_SENTENCE_MARKS: Final = re.compile(
    r"""[.!?。！？；…‼⁇⁈⁉｡]++[”’」』】〉》）〕"')\]*_]*+(?P<space>\s*+)"""
)
_WIDE_MARKS: Final = frozenset("。！？；…｡")
_LEAST_SENTENCE_CHARS: Final = 8
"""Shorter ones are numbers of items, initials and abbreviations."""


def pieces_of(text: str, *, size_tokens: int, count: Count, is_source: bool) -> Iterator[Piece]:
    """Yield pieces of at most `size_tokens`, unless a single character has more."""
    cutter = _Cutter(text, size_tokens, count)
    was_heading = False
    for block in blocks_of(text, is_source=is_source):
        front = _front(block, was_heading)
        for start, end, tokens, boundary in cutter.cut(block):
            yield Piece(start, end, tokens, front or boundary, block.path, block.kind)
            front = None
        was_heading = block.kind is BlockKind.HEADING


def _front(block: Block, was_heading: bool) -> Boundary | None:
    """Return the boundary in front of a block."""
    if was_heading:
        return Boundary.BEHIND_HEADING
    if block.kind is BlockKind.HEADING:
        return Boundary.HEADING
    return Boundary.LINE if block.is_continued else Boundary.BLOCK


_Cut = tuple[int, int, int, Boundary]


class _Cutter:
    """Cuts blocks of one text."""

    def __init__(self, text: str, size_tokens: int, count: Count) -> None:
        self._text = text
        self._size_tokens = size_tokens
        self._count = count
        self._window_chars = max(size_tokens // _BYTES_PER_CHARACTER, 1)

    def cut(self, block: Block) -> Iterator[_Cut]:
        if block.kind is BlockKind.PROSE:
            yield from self._fit_spans(self._sentences(block.start, block.end), Boundary.SENTENCE)
            return
        whole = self._fitting(block.start, block.end)
        if whole is not None:
            yield block.start, block.end, whole, Boundary.BLOCK
        else:
            yield from self._fit_spans(self._lines(block.start, block.end), Boundary.LINE)

    def _fitting(self, start: int, end: int) -> int | None:
        """Return the number of tokens, or None if a chunk does not hold them.

        Very long stretches are not counted.
        """
        if end - start > self._size_tokens * _MOST_CHARS_PER_TOKEN:
            return None
        tokens = self._count(self._text[start:end])
        return tokens if tokens <= self._size_tokens else None

    def _fit_spans(self, spans: Iterator[tuple[int, int]], boundary: Boundary) -> Iterator[_Cut]:
        for start, end in spans:
            tokens = self._fitting(start, end)
            if tokens is None:
                yield from self._windows(start, end, boundary)
            else:
                yield start, end, tokens, boundary

    def _lines(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        while start < end:
            line_end = self._text.find("\n", start, end) + 1 or end
            yield start, line_end
            start = line_end

    def _sentences(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        for mark in _SENTENCE_MARKS.finditer(self._text, start, end):
            is_wide = not _WIDE_MARKS.isdisjoint(mark[0])
            is_end = is_wide or (mark["space"] and mark.start() - start >= _LEAST_SENTENCE_CHARS)
            if is_end and mark.end() < end:
                yield start, mark.end()
                start = mark.end()
        yield start, end

    def _windows(self, start: int, end: int, boundary: Boundary) -> Iterator[_Cut]:
        """Cut windows so short that each surely fits, behind a space where there is one."""
        while start < end:
            stop = min(start + self._window_chars, end)
            if stop < end:
                stop = self._behind_space(start, stop)
            yield start, stop, self._count(self._text[start:stop]), boundary
            start, boundary = stop, Boundary.WORD

    def _behind_space(self, start: int, stop: int) -> int:
        for mark in ("\n", " ", "，", "、", ","):
            found = self._text.rfind(mark, start, stop)
            if found > start:
                return found + 1
        return stop
