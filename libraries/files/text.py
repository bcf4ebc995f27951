"""Decide which bytes are text, and decode them.

Tried in this order: what a byte order mark says (UTF-8, UTF-16), UTF-8, GB18030 (which reads GBK
and GB2312). Bytes that decode to control characters are no text.

Does not guess further: Latin-1 would make a text of every file.
"""

import codecs
import re
from typing import Final

from django.conf import settings

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Tab, line feeds, form feed and escape (coloured logs) occur in texts.
_NOT_IN_TEXTS: Final = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
# Binary formats that may consist of printable characters.
_BINARY_STARTS: Final = (b"%PDF-",)


def decode_file(data: bytes) -> str | None:
    """Decode the bytes, without their byte order mark; None if they are no text."""
    if data.startswith(_BINARY_STARTS):
        return None
    marked = [encoding for mark, encoding in _MARKS if data.startswith(mark)]
    for encoding in marked or ("utf-8", "gb18030"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return None if _NOT_IN_TEXTS.search(text) else text
    return None


def capped_text(text: str) -> str:
    """Cut the text to AMBER_MAX_MESSAGE_CHARS; a last line says how much is missing."""
    most = settings.AMBER_MAX_MESSAGE_CHARS
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[Cut: these are the first {most:,} of {len(text):,} characters.]"
