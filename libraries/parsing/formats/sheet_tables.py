"""Convert workbooks: each sheet becomes a heading and a Markdown table of its last shown values."""

import datetime
import io
from collections.abc import Iterator
from typing import Any, Final
from xml.etree import ElementTree

from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from libraries.parsing.formats.damage import damage_means
from libraries.parsing.formats.tables import table_lines
from libraries.parsing.result import Unreadable, refuse_long

MAX_ROWS: Final = 200_000
"""Limit of a workbook, empty rows between others included: about what the CPU time allows."""

DAMAGED: Final = "The workbook is damaged or incomplete and cannot be read."
EMPTY: Final = "The workbook contains no values."
TOO_MANY_ROWS: Final = f"The workbook has more than {MAX_ROWS:,} rows. Split it up."
_MIDNIGHT: Final = datetime.time()


def markdown_of_sheets(content: bytes) -> str:
    """Convert a workbook. Raises Unreadable."""
    with damage_means(DAMAGED, InvalidFileException, ElementTree.ParseError):
        workbook = load_workbook(
            io.BytesIO(content), read_only=True, data_only=True, keep_links=False
        )
        text = "\n\n".join(_sheets(workbook))
    if not text:
        raise Unreadable(EMPTY)
    return text


def _sheets(workbook: Any) -> Iterator[str]:
    rows_left = MAX_ROWS
    for sheet in workbook.worksheets:
        sheet.reset_dimensions()  # what a file says of its size need not be true
        rows = _Rows(sheet, rows_left)
        lines: list[str] = []
        chars = 0
        for line in table_lines(rows):
            chars += len(line) + 1
            refuse_long(chars)
            lines.append(line)
        rows_left -= rows.count
        if lines:
            yield f"# {sheet.title}\n\n" + "\n".join(lines)


class _Rows:
    """The rows of a sheet as texts, counted. Raises Unreadable at `most`."""

    def __init__(self, sheet: Any, most: int) -> None:
        self._sheet = sheet
        self._most = most
        self.count = 0

    def __iter__(self) -> Iterator[list[str]]:
        for row in self._sheet.iter_rows(values_only=True):
            self.count += 1
            if self.count > self._most:
                raise Unreadable(TOO_MANY_ROWS)
            yield [_render_cell(value) for value in row]


def _render_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return str(value.date() if value.time() == _MIDNIGHT else value)
    return str(value)
