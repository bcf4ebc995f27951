"""Decode bytes to text, whatever encoding they are in, or find that they are no text.

Tried in this order: what a byte order mark says (UTF-8, 16, 32), UTF-16 without a mark, UTF-8, what
the document says of itself, and the likeliest of the legacy encodings, as chardet guesses it.

Refuses bytes whose characters would be control characters: they are no text.
"""

import codecs
import re
from typing import Final

from libraries.parsing.result import Unreadable

NO_TEXT: Final = "The file contains no readable text: it is binary data of an unknown kind."
UNKNOWN_ENCODING: Final = (
    "The encoding of the text is not recognised. Save it as UTF-8 and upload it again."
)

_MARKS: Final = (  # UTF-32 first: its little-endian mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES: Final = 16_384
_CONTROLS: Final = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROLS: Final = 0.005
"""More than one character in 200: measured on images, executables and archives, 5 to 20 %."""
_MOST_UNEXPLAINED: Final = 0.1
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")

_LEAST_USUAL: Final = 0.9
"""The remaining tenth are symbols, emoji and what the sample cut in two."""
# A whole column of characters, U+xx00, is ASCII in the other byte order; but for three common ones.
_USUAL: Final = re.compile(
    r"[\t\n\r -~]|[\u4e00\u6700\u3000]|"
    r"(?=[\u00a0-\u1fff\u2010-\u206f\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uffef])"
    rf"[^{''.join(chr(high << 8) for high in range(1, 256))}]"
)

_DECLARED: Final = re.compile(
    rb"""(?:<meta[^>]{0,200}charset|<\?xml[^>]{0,100}encoding)\s*+=\s*+["']?+\s*+([\w.:-]{2,40})""",
    re.IGNORECASE,
)
_DECLARED_WITHIN_BYTES: Final = 2_048
# Python's other codecs decompress, escape, or run in quadratic time: no charsets.
_CHARSETS: Final = re.compile(
    r"(utf-8|ascii|latin|iso8859|cp\d|gb|big5|hkscs|euc_|shift_jis|koi8|mac-)"
)


def decode_text(content: bytes, *, charset: str = "") -> str:
    """Decode a text. `charset` is what the sender named, if anything. Raises Unreadable."""
    text = _decode_marked(content, charset)
    controls = len(_CONTROLS.findall(text))
    if controls > _MOST_CONTROLS * len(text):
        raise Unreadable(NO_TEXT)
    return text


def _decode_marked(content: bytes, charset: str) -> str:
    for mark, codec in _MARKS:
        if content.startswith(mark):
            return content.decode(codec, errors="replace")
    for codec in (_unmarked_utf16(content), "utf-8", *_declared_encodings(content, charset)):
        if codec:
            try:
                return content.decode(codec)
            except UnicodeDecodeError:
                continue
    if _is_mostly_utf8(content):
        return content.decode("utf-8", errors="replace")
    likely = _guess_codec(content)
    if not likely and _share_beyond_ascii(content) > _MOST_UNEXPLAINED:
        raise Unreadable(UNKNOWN_ENCODING)
    return content.decode(likely or "cp1252", errors="replace")


def _guess_codec(content: bytes) -> str:
    """Return the likeliest legacy encoding, empty if none fits. Raises Unreadable for what is no text.

    The sample begins with the first byte that is not ASCII: it begins a character everywhere.
    """
    import chardet

    found = _BEYOND_ASCII.search(content)
    start = found.start() if found else 0
    guess = chardet.detect(content[start : start + _SAMPLE_BYTES])
    if guess["mime_type"] == "application/octet-stream":
        raise Unreadable(NO_TEXT)
    return _known_codec(guess["encoding"] or "")


def _share_beyond_ascii(content: bytes) -> float:
    sample = content[:_SAMPLE_BYTES]
    return len(_BEYOND_ASCII.findall(sample)) / len(sample)


def _unmarked_utf16(content: bytes) -> str:
    """Return the byte order of UTF-16 without a mark; empty if the bytes are something else.

    In the right one nearly all characters are of some script, in the other few are. Line ends and
    spaces bring a NUL byte; without any, GBK's pairs could be taken for Korean ones.
    """
    sample = content[:_SAMPLE_BYTES]
    if len(content) % 2 or b"\0" not in sample:
        return ""
    shares = {codec: _usual_share(sample, codec) for codec in ("utf-16-le", "utf-16-be")}
    codec = max(shares, key=lambda each: shares[each])
    return codec if shares[codec] >= _LEAST_USUAL and min(shares.values()) < _LEAST_USUAL else ""


def _usual_share(sample: bytes, codec: str) -> float:
    text = sample.decode(codec, errors="replace")
    return len(_USUAL.findall(text)) / len(text)


def _declared_encodings(content: bytes, charset: str) -> list[str]:
    named = [charset.encode()] if charset else []
    named += _DECLARED.findall(content, 0, _DECLARED_WITHIN_BYTES)
    return [codec for each in named if (codec := _known_codec(each.decode("ascii", "replace")))]


def _known_codec(name: str) -> str:
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    # Pages that say GB2312 mean its supersets.
    wider = {"gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932"}
    return wider.get(codec, codec) if _CHARSETS.match(codec) else ""


def _is_mostly_utf8(content: bytes) -> bool:
    """Return whether nearly all is UTF-8, but for a broken character or a cut end."""
    sample = content[:_SAMPLE_BYTES].decode("utf-8", errors="replace")
    broken = sample.count("\ufffd")
    whole = sum(char > "\x7f" for char in sample) - broken
    return whole > 10 * broken
