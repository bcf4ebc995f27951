"""Write tables as CSV that programs read and spreadsheets open without running anything in it.

A cell that begins as a formula does would be run by a spreadsheet: such a text gets an apostrophe in
front, which spreadsheets take for "this is text".
https://owasp.org/www-community/attacks/CSV_Injection
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.http import HttpResponse

from amber.lib.rest.wire import JSONRenderer

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
CONTENT_TYPE: Final = "text/csv; charset=utf-8"


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return the table as CSV (RFC 4180). None becomes an empty cell."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(columns)
    writer.writerows([_cell(each) for each in row] for row in rows)
    return written.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def csv_response(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, filename: str
) -> HttpResponse:
    """Answer with the table as a file to keep."""
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    return HttpResponse(write_csv(columns, rows), content_type=CONTENT_TYPE, headers=headers)


class CSVRenderer(JSONRenderer):
    """Lets clients ask for CSV; what is rendered by it are errors."""

    media_type = "text/csv"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        if renderer_context:
            renderer_context["response"]["Content-Type"] = JSONRenderer.media_type
        return super().render(data, accepted_media_type, renderer_context)
