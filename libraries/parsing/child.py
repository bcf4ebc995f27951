"""Open documents in a child process: `python -m libraries.parsing.child`, started by `child_pool`.

It reads one document after the other from its standard input and writes texts to its output, under
the limits of `confinement`. Parsers are loaded with the first document that needs them. What a
parser raises beyond `Unreadable` ends the process with its trace: the parent says that the
document is damaged, and starts another. Without work for IDLE_SECONDS it ends by itself.

Refuses to load Django, numpy and the provider's client, whatever a parser would like.
"""

import gc
import json
import logging
import os
import select
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from libraries.parsing.confinement import ParserLimits, allow_one_document, confine
from libraries.parsing.formats.any_document import read_any
from libraries.parsing.formats.office_package import check_parts
from libraries.parsing.frames import frame, read_frame
from libraries.parsing.kinds import Kind, zip_kind
from libraries.parsing.result import ParsedText, Unreadable, join_pages, make_storable, refuse_long

IDLE_SECONDS: Final = 30.0
COLLECTED_EVERY: Final = 20
"""Documents between two collections: parsers make cycles of objects, of 1 MB a Word document."""
TOO_BIG_FOR_MEMORY: Final = (
    "Reading the document needs more memory than a document may use. Split it up."
)
_NOT_LOADED: Final = ("django", "numpy", "openai", "pandas")


def main() -> None:
    limits = ParserLimits(**json.loads(sys.argv[1]))
    for name in _NOT_LOADED:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it fails
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no reply
    logging.getLogger().addHandler(logging.NullHandler())  # the trace is to be the last line
    confine(limits)
    requests = os.fdopen(0, "rb", buffering=0)
    buffered = os.fdopen(os.dup(0), "rb")
    documents = 0
    # `select` sees the pipe alone, but nothing waits in the buffer: the parent sends the next
    # request only after the answer.
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        request = read_frame(buffered)
        if request is None:
            return
        header, content = request
        allow_one_document(limits)
        if not _answer(replies, header, content):
            return
        documents += 1
        if documents % COLLECTED_EVERY == 0:
            gc.collect()


def _answer(replies: BinaryIO, header: Mapping[str, str], content: bytes) -> bool:
    """Answer one request. Returns whether the process may go on: not after it ran out of memory."""
    reply: dict[str, Any]
    body, may_go_on = b"", True
    try:
        parsed = read_document(header, content)
    except Unreadable as refusal:
        reply = {"unreadable": str(refusal)}
    except MemoryError:
        reply, may_go_on = {"unreadable": TOO_BIG_FOR_MEMORY}, False
    else:
        reply = {"pages": parsed.pages, "mime_type": parsed.mime_type}
        body = parsed.text.encode()
    reply["peak_kilobytes"] = _peak_kilobytes()
    reply["is_last"] = not may_go_on
    replies.writelines(frame(reply, body))
    replies.flush()
    return may_go_on


def _peak_kilobytes() -> int:
    """Return the peak of resident memory; 0 where the system does not tell.

    `ru_maxrss` would begin with the parent's.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def read_document(header: Mapping[str, str], content: bytes) -> ParsedText:
    """Read a document as what `header["kind"]` says. Raises Unreadable.

    It is a name of `Kind`, PACKAGE for a zip whose parts will tell, ANY for what nobody has looked
    at (with `name` and `mime_type`), or WEB_PAGE for what `web_page` sends (with `url` and
    `mime_type`).
    """
    kind = header["kind"]
    if kind == "WEB_PAGE":
        from libraries.parsing.formats.web_page_text import markdown_of_web_page

        page = markdown_of_web_page(content, url=header["url"], mime_type=header["mime_type"])
        if page is not None:
            return ParsedText(make_storable(page), (), "text/markdown")
        parsed = read_document({**header, "kind": "ANY", "name": ""}, content)
        return replace(parsed, text=f"\n{parsed.text}", pages=())  # without a title
    if kind == "ANY":
        read = read_any(content, name=header["name"], mime_type=header["mime_type"])
        if isinstance(read, ParsedText):
            return read
        kind, content = read.kind, read.content
    if kind == "PACKAGE":
        kind = zip_kind(check_parts(content)).name
    found = Kind[kind]
    if found in (Kind.PDF, Kind.SLIDES):
        text, pages = join_pages(_pages_reader(found)(content))
        return ParsedText(text, pages, found.value)
    text = make_storable(_text_reader(found)(content))
    refuse_long(len(text))
    return ParsedText(text, (), found.value)


def _pages_reader(kind: Kind) -> Callable[[bytes], Any]:
    if kind is Kind.PDF:
        from libraries.parsing.formats.pdf_pages import pages_of_pdf

        return pages_of_pdf
    from libraries.parsing.formats.slide_pages import pages_of_slides

    return pages_of_slides


def _text_reader(kind: Kind) -> Callable[[bytes], str]:
    if kind is Kind.WORD:
        from libraries.parsing.formats.word_text import markdown_of_word

        return markdown_of_word
    if kind is Kind.SHEETS:
        from libraries.parsing.formats.sheet_tables import markdown_of_sheets

        return markdown_of_sheets
    from libraries.parsing.formats.html_text import markdown_of_html

    return markdown_of_html


if __name__ == "__main__":
    main()
