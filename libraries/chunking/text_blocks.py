"""Split a Markdown text, or source code, into blocks: headings, paragraphs, items, tables, code.

Blocks follow one another without gaps; white space belongs to the block before it. Each knows the
headings it stands under. The lines are read once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

MAX_TITLE_CHARS: Final = 120
"""Limit of a heading in a path, which is stored with every chunk below it."""


class BlockKind(Enum):
    HEADING = auto()
    PROSE = auto()
    LINES = auto()
    """A table, a code block, a part of source code: kept whole if possible, else cut at lines."""


@dataclass(frozen=True, slots=True)
class Block:
    """The stretch `text[start:end]`.

    `is_continued` means that it belongs to the block before, as the next list item does.
    """

    start: int
    end: int
    kind: BlockKind
    path: tuple[str, ...]
    is_continued: bool = False


_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE: Final = re.compile(r" {0,3}(?:(=+)|-{2,})[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_FENCE_END: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t]")
_MARKUP_CHARS: Final = 1_000
"""Longer lines are prose: no heading is as long."""


def blocks_of(text: str, *, is_source: bool) -> Iterator[Block]:
    reader = _SourceReader() if is_source else _MarkdownReader()
    for start, end in _lines(text):
        yield from reader.read(text[start : min(end, start + _MARKUP_CHARS)].rstrip("\n"), start)
    yield from reader.finish(len(text))


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield start, end
        start = end


class _BlockReader:
    """Holds the block that is being read, since the next lines may still belong to it."""

    def __init__(self) -> None:
        self._start = 0
        self._kind: BlockKind | None = None
        self._path: tuple[str, ...] = ()
        self._is_continued = False

    def read(self, line: str, start: int) -> Iterator[Block]:
        """Read one line; yield the block that ended before it, if one did."""
        raise NotImplementedError

    def finish(self, end: int) -> Iterator[Block]:
        if end > self._start:
            kind = self._kind or BlockKind.PROSE
            yield Block(self._start, end, kind, self._path, self._is_continued)

    def _begin(self, kind: BlockKind, start: int, *, is_continued: bool = False) -> Iterator[Block]:
        """Begin a block and yield the one before. White space before the first block is its own."""
        if self._kind is not None:
            yield from self.finish(start)
            self._start = start
        self._kind, self._is_continued = kind, is_continued


class _SourceReader(_BlockReader):
    """Reads source code as parts between blank lines; an indented part continues the one before."""

    def __init__(self) -> None:
        super().__init__()
        self._is_behind_blank = True

    def read(self, line: str, start: int) -> Iterator[Block]:
        is_blank = not line or line.isspace()
        if self._is_behind_blank and not is_blank:
            yield from self._begin(BlockKind.LINES, start, is_continued=line[0].isspace())
        self._is_behind_blank = is_blank


class _MarkdownReader(_BlockReader):
    def __init__(self) -> None:
        super().__init__()
        self._titles: list[tuple[int, str]] = []
        self._fence = ""
        self._is_closed = True
        """True after a blank line, and when the current block takes no further lines."""
        self._is_table = False
        self._is_item = False
        self._single_line: str | None = None
        """The only line so far of a paragraph, which an underline may still make a heading."""

    def read(self, line: str, start: int) -> Iterator[Block]:
        if self._fence:
            self._read_code(line)
        elif not line or line.isspace():
            self._is_closed = True
            self._single_line = None
        elif found := _HEADING.match(line):
            yield from self._begin_heading(len(found[1]), _title(line[found.end() :]), start)
        elif self._single_line is not None and (found := _UNDERLINE.match(line)):
            self._become_heading(1 if found[1] else 2, self._single_line)
        elif found := _FENCE.match(line):
            yield from self._begin_other(BlockKind.LINES, start)
            self._fence, self._is_closed = found[1], False
        elif line.lstrip(" ").startswith("|"):
            if not self._is_table or self._is_closed:
                yield from self._begin_other(BlockKind.LINES, start)
            self._is_table, self._is_closed = True, False
        else:
            yield from self._read_prose(line, start)

    def _read_code(self, line: str) -> None:
        end = _FENCE_END.match(line)
        if end and end[1].startswith(self._fence):
            self._fence, self._is_closed = "", True

    def _read_prose(self, line: str, start: int) -> Iterator[Block]:
        if _ITEM.match(line):
            yield from self._begin_other(BlockKind.PROSE, start, is_continued=self._is_item)
            self._is_item = True
        elif self._is_closed or self._is_table:
            yield from self._begin_other(BlockKind.PROSE, start)
            self._single_line = line.strip()
        else:
            self._single_line = None
        self._is_closed = False

    def _begin_other(
        self, kind: BlockKind, start: int, *, is_continued: bool = False
    ) -> Iterator[Block]:
        yield from self._begin(kind, start, is_continued=is_continued)
        self._path = tuple(title for _, title in self._titles)
        self._is_table, self._is_item, self._single_line = False, False, None

    def _begin_heading(self, level: int, title: str, start: int) -> Iterator[Block]:
        yield from self._begin_other(BlockKind.HEADING, start)
        self._become_heading(level, title)

    def _become_heading(self, level: int, title: str) -> None:
        while self._titles and self._titles[-1][0] >= level:
            self._titles.pop()
        if title:
            self._titles.append((level, title[:MAX_TITLE_CHARS]))
        self._kind = BlockKind.HEADING
        self._path = tuple(title for _, title in self._titles)
        self._is_closed, self._single_line = True, None


def _title(rest: str) -> str:
    """Return a heading's text without the closing marks that it may have."""
    title = rest.strip()
    unmarked = title.rstrip("#")
    return unmarked.rstrip() if not unmarked or unmarked[-1] in " \t" else title
