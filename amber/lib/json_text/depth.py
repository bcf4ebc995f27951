"""Tell how deep a JSON text is nested, before anything parses it.

Parsers and the code that walks what they return recurse per level, so depth is a way to make a
small text expensive or fatal (RecursionError). Counts; does not check that the text is JSON.
"""

import re
from typing import Final

# Possessive, and the closing quote is optional at the end: linear, also on broken text.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")


def is_deeper(text: bytes, limit: int) -> bool:
    """Return whether arrays and objects are nested more than `limit` deep, or never closed.

    O(len(text) * limit) at C speed: each round takes away the innermost pairs.
    """
    if text.count(b"[") + text.count(b"{") <= limit:
        return False
    left = _STRING.sub(b"", text).translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(limit):
        fewer = left.replace(b"[]", b"")
        if len(fewer) == len(left):
            break
        left = fewer
    return bool(left)
