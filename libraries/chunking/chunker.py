"""Cut a document's text into chunks of a size that can be embedded and shown.

    chunks = chunk(text, size_tokens=400, overlap_tokens=40)
    assert text[chunks[0].start : chunks[0].end]      # its content, exactly

The text is read once, as a stream of pieces (`text_pieces`) of at most one chunk's size. Pieces are
gathered until the next does not fit; then the cut falls at the strongest boundary in the second
half of what was gathered: before a heading rather than between paragraphs, there rather than
between sentences. A heading always begins a chunk unless the one before would be very small. The
next chunk begins with the last whole sentences of the one before, as many as `overlap_tokens`
holds, but never over a heading and never more than half of it.

Tokens are counted piece by piece and added up: each character of the text is counted at most three
times, whatever the text. The sum is a little above the count of the whole.

The module is pure and deterministic. A text without content has no chunks.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from engine.text.tokens import count_text
from libraries.chunking.text_blocks import BlockKind
from libraries.chunking.text_pieces import Boundary, Count, Piece, pieces_of

PATH_GAP: Final = " > "
SOURCE_PREFIX: Final = "text/x-"

_SMALL_PART: Final = 4
"""A section shorter than a quarter of a chunk shares one with the next: a title page, a stub."""
_INDENT_CHARS: Final = 100
_WORD_CHARS: Final = 30
"""Where a longer text has no space, it is written without, or is no text."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a text: `text[start:end]`, which neither begins nor ends with empty lines.

    `order` counts from 0. `page` is where it begins, from 1; None without pages. `heading` is the
    path of headings over all of it, as "Manual > Setup"; None outside headings. `tokens` is at
    most `size_tokens`, unless one character has more.
    """

    order: int
    start: int
    end: int
    page: int | None
    heading: str | None
    tokens: int


def chunk(
    text: str,
    *,
    size_tokens: int,
    overlap_tokens: int,
    pages: Sequence[int] = (),
    mime_type: str = "",
    count: Count = count_text,
) -> list[Chunk]:
    """Return the chunks of `text`, in order.

    Every character that is not white space is in some chunk; no chunk is only white space. `pages`
    are the offsets where pages begin. Source code (`mime_type` text/x-…) is not searched for
    headings: its comments look like some. Cost: linear, about 2 s for 10 MB.
    """
    is_source = mime_type.startswith(SOURCE_PREFIX)
    gatherer = _Gatherer(text, size_tokens, overlap_tokens, count)
    chunks: list[Chunk] = []
    for piece in pieces_of(text, size_tokens=size_tokens, count=count, is_source=is_source):
        for held in gatherer.add(piece):
            _append(chunks, text, held, pages)
    _append(chunks, text, gatherer.rest(), pages)
    return chunks


def _append(chunks: list[Chunk], text: str, held: list[Piece], pages: Sequence[int]) -> None:
    if not held:
        return
    start, end = _without_margins(text, held[0].start, held[-1].end)
    known_end = chunks[-1].end if chunks else 0
    if end > max(start, known_end):  # else white space, or nothing but that is new
        chunks.append(
            Chunk(
                order=len(chunks),
                start=start,
                end=end,
                page=bisect_right(pages, start) if pages else None,
                heading=PATH_GAP.join(_common_path(held)) or None,
                tokens=_tokens(held),
            )
        )


class _Gatherer:
    """Gathers pieces for the next chunk. The chunk before has the first `_repeated` of them too."""

    def __init__(self, text: str, size_tokens: int, overlap_tokens: int, count: Count) -> None:
        self._text = text
        self._size_tokens = size_tokens
        self._overlap_tokens = overlap_tokens
        self._count = count
        self._held: list[Piece] = []
        self._held_tokens = 0
        self._repeated = 0
        self._fresh_tokens = 0

    def add(self, piece: Piece) -> Iterator[list[Piece]]:
        """Take one more piece; yield the pieces of each chunk that is complete without it."""
        is_section = piece.boundary is Boundary.HEADING
        if is_section and self._fresh_tokens * _SMALL_PART >= self._size_tokens:
            yield self._held
            self._hold_pieces([], 0)
        while self._held and self._held_tokens + piece.tokens > self._size_tokens:
            if self._repeated == len(self._held):
                # Nothing new in it yet: the overlap gives way.
                self._hold_pieces(self._held[1:], self._repeated - 1)
            else:
                yield self._cut(piece)
        self._held.append(piece)
        self._held_tokens += piece.tokens
        self._fresh_tokens += piece.tokens

    def rest(self) -> list[Piece]:
        """Return what is left at the end; empty if there is nothing new in it."""
        return self._held if self._repeated < len(self._held) else []

    def _hold_pieces(self, pieces: list[Piece], repeated: int) -> None:
        self._held, self._repeated = pieces, repeated
        self._held_tokens = _tokens(pieces)
        self._fresh_tokens = _tokens(pieces[repeated:])

    def _cut(self, following: Piece) -> list[Piece]:
        """Take a chunk's pieces from the held ones; what it shares with the next stays."""
        position = self._best_position(following.boundary)
        done, rest = self._held[:position], self._held[position:]
        behind = rest[0] if rest else following
        overlap = [] if behind.boundary is Boundary.HEADING else self._overlap(done)
        self._hold_pieces(overlap + rest, len(overlap))
        return done

    def _best_position(self, following: Boundary) -> int:
        """Return where the second half has its strongest boundary; the last of equals."""
        best, best_boundary = len(self._held), following
        before = self._held_tokens
        for position in range(len(self._held) - 1, self._repeated, -1):
            before -= self._held[position].tokens
            if before * 2 < self._size_tokens:
                break
            if self._held[position].boundary < best_boundary:
                best, best_boundary = position, self._held[position].boundary
        return best

    def _overlap(self, done: list[Piece]) -> list[Piece]:
        """Return the last whole pieces of a chunk, or the end of the last one if it is prose."""
        left = min(self._overlap_tokens, _tokens(done) // 2)
        begin = len(done)
        while begin > 1 and done[begin - 1].tokens <= left:
            begin -= 1
            left -= done[begin].tokens
            if done[begin].boundary is Boundary.HEADING:
                break
        if begin == len(done) and left and done[-1].kind is BlockKind.PROSE:
            return self._end_of(done[-1], left)
        return done[begin:]

    def _end_of(self, piece: Piece, most_tokens: int) -> list[Piece]:
        """Return the last words of a piece as a piece; none if they are too long."""
        chars = (piece.end - piece.start) * most_tokens // piece.tokens
        start = piece.end - chars
        space = self._text.find(" ", start, start + _WORD_CHARS)
        start = start if space < 0 else space + 1
        tokens = self._count(self._text[start : piece.end])
        if start >= piece.end or tokens > most_tokens:
            return []
        return [replace(piece, start=start, tokens=tokens, boundary=Boundary.WORD)]


def _tokens(pieces: Sequence[Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _common_path(pieces: Sequence[Piece]) -> Sequence[str]:
    """Return the headings over all of these pieces; of headings alone, the last one's."""
    paths = {piece.path for piece in pieces if piece.kind is not BlockKind.HEADING}
    levels = zip(*(paths or {pieces[-1].path}), strict=False)
    return [titles[0] for titles in takewhile(lambda titles: len(set(titles)) == 1, levels)]


def _without_margins(text: str, start: int, end: int) -> tuple[int, int]:
    """Narrow a stretch to what stands between empty lines, with its first line's indentation."""
    content = text[start:end]
    first = start + len(content) - len(content.lstrip())
    last = start + len(content.rstrip())
    if first >= last:
        return start, start
    line = text.rfind("\n", start, first) + 1 or start
    return (line if first - line <= _INDENT_CHARS else first), last
