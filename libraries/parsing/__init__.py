"""Parse documents of many formats to text with its structure: Markdown headings, tables, code.

    parsed = parse(content, name="report.docx", mime_type="")

All reading happens in a child process with few rights (`child_pool`), whatever a document claims to be: a
text can be as hostile as a PDF. Knows no Django; importing it loads no parser.
"""

from typing import IO

from libraries.parsing.child_pool import parse_in_child
from libraries.parsing.frames import Body
from libraries.parsing.result import EMPTY, ParsedText, ParserLost, Unreadable

__all__ = ["ParsedText", "ParserLost", "Unreadable", "parse"]


def parse(content: bytes | IO[bytes], *, name: str, mime_type: str) -> ParsedText:
    """Return the text of a document. Blocks; may be called from many threads.

    An open file is read in pieces, from its beginning. `name` and `mime_type` are what its sender says;
    the content counts for more. Takes a millisecond per 100 KB of text, up to a minute for other formats,
    all in a child. Raises Unreadable (the document's fault; the message is for people) and ParserLost
    (try again).
    """
    # The child looks for white space in encodings other than ASCII, after decoding.
    document = Body(content)
    if not any(piece.strip(b"\0 \t\r\n") for piece in document.pieces()):
        raise Unreadable(EMPTY)
    return parse_in_child(document, kind="ANY", name=name, mime_type=mime_type)
