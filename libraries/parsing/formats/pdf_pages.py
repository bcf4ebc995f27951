"""Read the text of PDFs page by page, with pypdf.

Refuses PDFs with a password, without text (scans), and over MAX_PAGES. pypdf has limits of its own
and at some of them goes on with less text and only a warning: such a PDF is refused here.
"""

import io
import logging
from collections.abc import Iterator
from typing import Final

from pypdf import PdfReader
from pypdf.errors import LimitReachedError, PyPdfError

from libraries.parsing.result import Unreadable

MAX_PAGES: Final = 2_000

DAMAGED: Final = "The PDF is damaged or incomplete and cannot be read."
LOCKED: Final = "The PDF is protected by a password. Save it without one."
NO_PAGES: Final = "The PDF has no pages."
SCANNED: Final = (
    "The PDF contains no text, only images of pages. Run text recognition (OCR) on it first."
)
TOO_MANY_PAGES: Final = f"The PDF has more than {MAX_PAGES:,} pages. Split it up."
BOMB: Final = "The PDF unpacks to far more than a document may contain and is not read."

# Whatever pypdf runs into while it follows references that a broken file has made up.
_BROKEN: Final = (
    PyPdfError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class _Warnings(logging.Handler):
    """Remembers whether pypdf said that it left something out."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.is_cut = False

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        self.is_cut = self.is_cut or "Exceeded" in message or "exceeds maximum" in message


def pages_of_pdf(content: bytes) -> Iterator[str]:
    """Yield the text of each page; pages without text are empty. Raises Unreadable."""
    warnings = _Warnings()
    logging.getLogger("pypdf").addHandler(warnings)
    try:
        reader = _open_pdf(content)
        has_text = False
        for number in range(len(reader.pages)):
            text = _text_of(reader, number)
            if warnings.is_cut:
                raise Unreadable(BOMB)
            has_text = has_text or not (not text or text.isspace())
            yield text
    finally:
        logging.getLogger("pypdf").removeHandler(warnings)
    if not has_text:
        raise Unreadable(SCANNED)


def _open_pdf(content: bytes) -> PdfReader:
    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable(LOCKED)
        pages = len(reader.pages)
    except LimitReachedError:
        raise Unreadable(BOMB) from None
    except _BROKEN:
        raise Unreadable(DAMAGED) from None
    if not pages:
        raise Unreadable(NO_PAGES)
    if pages > MAX_PAGES:
        raise Unreadable(TOO_MANY_PAGES)
    return reader


def _text_of(reader: PdfReader, number: int) -> str:
    try:
        return reader.pages[number].extract_text()
    except LimitReachedError:
        raise Unreadable(BOMB) from None
    except _BROKEN:
        raise Unreadable(f"Page {number + 1} of the PDF is damaged and cannot be read.") from None
