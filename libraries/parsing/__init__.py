"""Documents of many formats to text with its structure: headings, tables and code as Markdown.

    parsed = parse(content, name="report.docx", mime_type="")

Texts, Markdown, tables of separated values and source code are read where the call is made: that
is linear in their size. All else is opened in a child process of little power (`child_pool`).
Knows no Django; importing it loads no parser.
"""

from typing import Final

from libraries.parsing.child_pool import parse_in_child
from libraries.parsing.encodings import decoded
from libraries.parsing.kinds import Kind, binary_kind, is_zip, language_of, text_kind
from libraries.parsing.result import (
    ParsedText,
    ParserLost,
    Unreadable,
    refuse_empty,
    refuse_long,
    storable,
)
from libraries.parsing.tables import separated_as_markdown

__all__ = ["ParsedText", "ParserLost", "Unreadable", "parse"]

EMPTY: Final = "The document is empty."


def parse(content: bytes, *, name: str, mime_type: str) -> ParsedText:
    """The text of a document. Blocks; may be called from many threads.

    `name` and `mime_type` are what its sender says, and count for less than the content. Cost: for
    text a millisecond per 100 KB; else up to a minute in a child. Raises Unreadable (the
    document's fault: its message is for people) and ParserLost (try again).
    """
    refuse_empty_bytes(content)
    if binary_kind(content) is Kind.PDF:
        return parse_in_child(content, kind=Kind.PDF.name)
    if is_zip(content):
        return parse_in_child(content, kind="PACKAGE")
    text = decoded(content, charset=_charset(mime_type))
    refuse_long(len(text))
    kind = text_kind(text, name=name, mime_type=mime_type)
    if kind is Kind.HTML:
        return parse_in_child(text.encode("utf-8", "replace"), kind=kind.name)
    return _parsed_text(storable(text), kind, name)


def refuse_empty_bytes(content: bytes) -> None:
    """Raises Unreadable. White space in any encoding is looked for after decoding."""
    if not content.strip(b"\0 \t\r\n"):
        raise Unreadable(EMPTY)


def _parsed_text(text: str, kind: Kind, name: str) -> ParsedText:
    refuse_empty(text, EMPTY)
    if kind is Kind.TABLE:
        text = separated_as_markdown(text)
        refuse_empty(text, EMPTY)
        refuse_long(len(text))
    mime_type = f"{kind}{language_of(name)}" if kind is Kind.SOURCE else kind.value
    return ParsedText(text, (), mime_type)


def _charset(mime_type: str) -> str:
    """What a Content-Type says behind `charset=`; empty if nothing."""
    _, _, after = mime_type.lower().partition("charset=")
    return after.partition(";")[0].strip(" \"'")
