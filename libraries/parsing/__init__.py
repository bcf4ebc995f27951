"""Parse documents of many formats to text with its structure: Markdown headings, tables, code.

    parsed = parse(content, name="report.docx", mime_type="")

What a document is and what it says is found out in a child process of little power (`child_pool`),
whatever it claims to be: a text can be as hostile as a PDF. Knows no Django; importing it loads no
parser.
"""

from typing import IO, Final

from libraries.parsing.child_pool import parse_in_child
from libraries.parsing.frames import Body
from libraries.parsing.result import ParsedText, ParserLost, Unreadable

__all__ = ["ParsedText", "ParserLost", "Unreadable", "parse"]

EMPTY: Final = "The document is empty."


def parse(content: bytes | IO[bytes], *, name: str, mime_type: str) -> ParsedText:
    """Return the text of a document. Blocks; may be called from many threads.

    An open file is read in pieces, from its beginning.

    `name` and `mime_type` are what its sender says, and count for less than the content. Cost: for
    text a millisecond per 100 KB, else up to a minute; all of it in a child. Raises Unreadable (the
    document's fault: its message is for people) and ParserLost (try again).
    """
    # White space in other encodings than ASCII is looked for by the child, after decoding.
    document = Body(content)
    if not any(piece.strip(b"\0 \t\r\n") for piece in document.pieces()):
        raise Unreadable(EMPTY)
    return parse_in_child(document, kind="ANY", name=name, mime_type=mime_type)
