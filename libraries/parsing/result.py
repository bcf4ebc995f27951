"""Define what parsing gives and refuses with, and join pages to one text with offsets.

Text is made fit to be stored: line ends are `\\n`; NUL and other control characters and lone
surrogates are gone (Postgres and the providers refuse them). Offsets are counted after that.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_TEXT_CHARS: Final = 20_000_000
"""Limit of one document: ten times a very long book. What is longer is data, not reading matter."""

MAX_PAGE_CHARS: Final = 2_000_000
"""Limit of a web page's HTML. Measured: 4 s of CPU for this many characters of short paragraphs,
growing linearly."""
PAGE_TOO_LARGE: Final = f"The page has more than {MAX_PAGE_CHARS:,} characters of HTML."

PAGE_GAP: Final = "\n\n"

# Tab, line feeds, form feed and escape (coloured logs) occur in texts.
_NOT_STORED: Final = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f\x7f\ud800-\udfff]")


class Unreadable(Exception):
    """The document itself is why there is no text: trying again changes nothing.

    The message is for the person who uploaded it.
    """


class ParserLost(Exception):
    """The parser was killed from outside (memory of the machine, an operator): try again.

    Not the document's fault, unless it happens to the same document again and again.
    """


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A document's text.

    `pages` are the offsets in `text` where pages begin; empty where the format has no pages.

    `mime_type` is what the content is, whatever its sender said. `text/x-<language>` is source
    code, verbatim; what is not `text/plain`, source or a PDF is Markdown.
    """

    text: str
    pages: tuple[int, ...]
    mime_type: str


def make_storable(text: str) -> str:
    """Return the text without what cannot be stored, with `\\n` as line ends."""
    return _NOT_STORED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def join_pages(pages: Iterable[str]) -> tuple[str, tuple[int, ...]]:
    """Join the pages to one text, and tell where each begins in it.

    Stops reading at the limit. Raises Unreadable.
    """
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    for page in pages:
        page = make_storable(page).strip()
        starts.append(length)
        parts.append(page)
        length += len(page) + len(PAGE_GAP)
        refuse_long(length)
    text = PAGE_GAP.join(parts)
    # Empty last pages begin where the text ends.
    return text, tuple(min(start, len(text)) for start in starts)


def refuse_long(chars: int) -> None:
    """Raise Unreadable for more than MAX_TEXT_CHARS."""
    if chars > MAX_TEXT_CHARS:
        raise Unreadable(
            f"The document has more than {MAX_TEXT_CHARS:,} characters of text. Split it up."
        )


EMPTY: Final = "The document is empty."


def refuse_empty(text: str) -> None:
    """Raise Unreadable for a text that is only white space."""
    if not text or text.isspace():
        raise Unreadable(EMPTY)
