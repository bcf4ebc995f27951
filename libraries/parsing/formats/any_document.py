"""Find out what a document is, and read it if it is a text: the first step of the child.

Does not open PDFs, Office files and HTML itself, but says which of the child's readers does. Runs
in the child because recognising a text costs time that its writer can choose.
"""

from dataclasses import dataclass

from libraries.parsing.encodings import decode_text
from libraries.parsing.formats.tables import convert_separated
from libraries.parsing.kinds import Kind, binary_kind, is_zip, language_of, text_kind
from libraries.parsing.result import ParsedText, make_storable, refuse_empty, refuse_long


@dataclass(frozen=True, slots=True)
class ReaderInput:
    """The input for another reader of the child: its name, and the bytes."""

    kind: str
    content: bytes


def read_any(content: bytes, *, name: str, mime_type: str) -> ParsedText | ReaderInput:
    """Return the text of what is one, or say who reads it. Raises Unreadable."""
    if binary_kind(content) is Kind.PDF:
        return ReaderInput(Kind.PDF.name, content)
    if is_zip(content):
        return ReaderInput("PACKAGE", content)
    text = decode_text(content, charset=charset_of(mime_type))
    refuse_long(len(text))
    kind = text_kind(text, name=name, mime_type=mime_type)
    if kind is Kind.HTML:
        return ReaderInput(kind.name, text.encode("utf-8", "replace"))
    return _parsed_text(make_storable(text), kind, name)


def charset_of(content_type: str) -> str:
    """Return what a Content-Type says behind `charset=`; empty if nothing."""
    _, _, after = content_type.lower().partition("charset=")
    return after.partition(";")[0].strip(" \"'")


def _parsed_text(text: str, kind: Kind, name: str) -> ParsedText:
    refuse_empty(text)
    if kind is Kind.TABLE:
        text = convert_separated(text)
        refuse_empty(text)
        refuse_long(len(text))
    mime_type = f"{kind}{language_of(name)}" if kind is Kind.SOURCE else kind.value
    return ParsedText(text, (), mime_type)
