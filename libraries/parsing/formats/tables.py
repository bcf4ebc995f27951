"""Rows of cells as a Markdown table, and texts of separated values as rows."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_DELIMITERS: Final = ",;\t|"
_SNIFFED_CHARS: Final = 65_536
_MOST_FIELD_CHARS: Final = 1_000_000


def table_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of one Markdown table; the first row is its header. Rows without content are left out.

    Empty cells at the end of a row are, too: such a row is as wide as its content.
    """
    is_first = True
    for row in rows:
        cells = [_cell(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            continue
        yield f"| {' | '.join(cells)} |"
        if is_first:
            yield f"| {' | '.join('---' for _ in cells)} |"
            is_first = False


def separated_as_markdown(text: str) -> str:
    """A text of comma-, semicolon-, tab- or pipe-separated values.

    A table that csv gives up on (a quotation mark that is never closed) stays the text it is.
    """
    # Above csv's own limit of 131,072: a cell may hold an article.
    csv.field_size_limit(_MOST_FIELD_CHARS)
    rows = csv.reader(io.StringIO(text), delimiter=_delimiter(text), skipinitialspace=True)
    try:
        return "\n".join(table_lines(rows))
    except csv.Error:
        return text


def _cell(value: str) -> str:
    """On one line, and without a bar that would end the cell."""
    return " ".join(value.split()).replace("|", "\\|")


def _delimiter(text: str) -> str:
    """The one that stands in the first line most often, counted outside quotation marks."""
    first = text[:_SNIFFED_CHARS].lstrip().partition("\n")[0]
    outside = "".join(first.split('"')[::2])
    return max(_DELIMITERS, key=outside.count)
