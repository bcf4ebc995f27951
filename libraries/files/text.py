"""Decide which bytes are text, and decode them.

Tried in this order: what a byte order mark says (UTF-8, UTF-16), UTF-8, GB18030 (which reads GBK
and GB2312). Bytes that decode to control characters are no text.

Does not guess further: Latin-1 would make a text of every file.
"""

import codecs
import re
from itertools import chain
from typing import Final

from django.conf import settings

from libraries.files.payload import Payload

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Tab, line feeds, form feed and escape (coloured logs) occur in texts.
_NOT_IN_TEXTS: Final = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
# Binary formats that may consist of printable characters.
_BINARY_STARTS: Final = (b"%PDF-",)


def read_text(payload: Payload) -> str | None:
    """Decode the bytes, without their byte order mark, as `capped_text`; None if they are no text.

    Holds as much of the text as it returns, and a piece more.
    """
    head = payload.head(8)
    if head.startswith(_BINARY_STARTS):
        return None
    marked = [encoding for mark, encoding in _MARKS if head.startswith(mark)]
    for encoding in marked or ("utf-8", "gb18030"):
        try:
            return _decode(payload, encoding)
        except UnicodeDecodeError:
            continue
    return None


def _decode(payload: Payload, encoding: str) -> str | None:
    """Decode piece by piece. Raises UnicodeDecodeError."""
    decoder, kept, chars, is_text = codecs.getincrementaldecoder(encoding)(), "", 0, True
    for piece in chain(payload.pieces(), [b""]):
        text = decoder.decode(piece, final=not piece)
        is_text = is_text and not _NOT_IN_TEXTS.search(text)
        kept += text[: max(settings.AMBER_MAX_MESSAGE_CHARS - len(kept), 0)]
        chars += len(text)
    return capped_text(kept, chars=chars) if is_text else None


def capped_text(text: str, *, chars: int | None = None) -> str:
    """Cut the text to AMBER_MAX_MESSAGE_CHARS; a last line says how much is missing.

    `chars` is how long it was, if it is only the beginning.
    """
    most, chars = settings.AMBER_MAX_MESSAGE_CHARS, chars or len(text)
    if chars <= most:
        return text
    return f"{text[:most]}\n[Cut: these are the first {most:,} of {chars:,} characters.]"
