"""When two statements say the same, and when one says something else of the same thing. Pure.

Two texts can be near to each other and say the opposite ("my PIN is 1234", "my PIN is 1235"): so
nearness alone never makes them the same. Numbers and negations must agree too.
"""

import hashlib
import re
import unicodedata
from typing import Final

NEAR_SAME: Final = 0.95
"""Cosine similarity from which two statements say the same, if numbers and negations agree."""

_NOT_WORDS = re.compile(r"[\W_]+")
_NUMBERS = re.compile(r"\d+")
_NEGATIONS = re.compile(
    r"\b(?:not|no|never|nor|without|cannot|\w+n't|\w+n’t|hardly|stopped|former(?:ly)?)\b|[不没無无未别]"
)
_SUBJECT = re.compile(
    r"(?:(?:my|the user's|user's)\s+(?P<english>[\w' -]{2,60}?)\s+(?:is|are|was|were)\b"
    r"|我的?(?P<chinese>[\u4e00-\u9fff]{1,12}?)(?:是|叫|为))",
    re.IGNORECASE,
)


def fingerprint(statement: str) -> str:
    """MD5 of what is said, without case, punctuation and spaces: equal for the same words."""
    plain = _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", statement).casefold()).strip()
    return hashlib.md5(plain.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def can_be_same(one: str, other: str) -> bool:
    """Whether nearness may make these the same: they agree in every number and in negation."""
    return _NUMBERS.findall(one) == _NUMBERS.findall(other) and bool(
        _NEGATIONS.search(one.casefold())
    ) == bool(_NEGATIONS.search(other.casefold()))


def subject_of(statement: str) -> str | None:
    """What a statement like "my favourite colour is blue" tells of; None for any other."""
    found = _SUBJECT.match(statement.strip())
    if found is None:
        return None
    return " ".join((found["english"] or found["chinese"]).casefold().split())
