"""Write rows of cells as a Markdown table, and convert texts of separated values."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_DELIMITERS: Final = ",;\t|"
_SNIFFED_CHARS: Final = 65_536
_MOST_FIELD_CHARS: Final = 1_000_000


def table_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of one Markdown table, whose header is the first row.

    Rows without content are left out, and so are empty cells at the end of a row.
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


def convert_separated(text: str) -> str:
    """Convert a text of comma-, semicolon-, tab- or pipe-separated values.

    A table that csv gives up on (a quotation mark that is never closed) stays as it is.
    """
    # Above csv's own limit of 131,072: a cell may hold an article.
    csv.field_size_limit(_MOST_FIELD_CHARS)
    rows = csv.reader(io.StringIO(text), delimiter=_delimiter(text), skipinitialspace=True)
    try:
        return "\n".join(table_lines(rows))
    except csv.Error:
        return text


def _cell(value: str) -> str:
    """Return the value on one line, with bars escaped, which would end the cell."""
    return " ".join(value.split()).replace("|", "\\|")


def _delimiter(text: str) -> str:
    """Return the delimiter that the first line has most often, outside quotation marks."""
    first = text[:_SNIFFED_CHARS].lstrip().partition("\n")[0]
    outside = "".join(first.split('"')[::2])
    return max(_DELIMITERS, key=outside.count)
