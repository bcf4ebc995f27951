"""Clean the names by which people know each other and each other's things.

A character that nobody sees, or that turns the direction of the text around it, lets one name look like
another. Such characters are left out, not refused: whoever pasted one would look for it in vain. Letters
that look alike (the Latin a, the Cyrillic а) are not told apart. Names of files have a stricter rule
(`libraries.files.names`).
"""

import re
from typing import Final

_BREAKS: Final = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]+")
# Behind letters of scripts that join or stack, from Arabic to Burmese, Khmer and Mongolian, and in emoji.
_WHERE_JOINERS_JOIN: Final = r"\u0600-\u109f\u1780-\u18af\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_UNSEEN: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
    rf"|(?<![{_WHERE_JOINERS_JOIN}])[\u200c\u200d]"
)
"""Controls, marks of direction, and what is drawn as nothing although Unicode calls it a letter or sign."""


def plain_name(given: str) -> str:
    """Return the name on one line, without what nobody sees; empty if nothing is left."""
    return _UNSEEN.sub("", _BREAKS.sub(" ", given)).strip()
