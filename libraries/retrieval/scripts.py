"""Tell which script a text is mostly written in.

Scripts as Unicode names them (UAX #24); those that one language mixes are one here.
"""

from typing import Final

import regex  # type: ignore[import-untyped]

_SCRIPTS: Final = {
    "latin": "Latin",
    "east_asian": "Han,Hiragana,Katakana,Hangul,Bopomofo",
    "cyrillic": "Cyrillic",
    "greek": "Greek",
    "arabic": "Arabic",
    "hebrew": "Hebrew",
    "devanagari": "Devanagari",
    "thai": "Thai",
}
OTHER: Final = "other"
LOOKED_AT_CHARS: Final = 2_000
"""Enough to tell, and bounded."""

_EACH: Final = {
    name: regex.compile("[" + "".join(rf"\p{{Script={s}}}" for s in scripts.split(",")) + "]")
    for name, scripts in _SCRIPTS.items()
}
_LATIN_SHARE: Final = 4
"""So many Latin letters say about as much as one character of Chinese: a word against a word."""


def script_of(text: str) -> str:
    """Return the name of the script, or "other".

    A few names in Latin letters do not make a Chinese text Latin.
    """
    looked_at = text[:LOOKED_AT_CHARS]
    counts = {name: len(pattern.findall(looked_at)) for name, pattern in _EACH.items()}
    counts["latin"] = -(-counts["latin"] // _LATIN_SHARE)
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else OTHER
