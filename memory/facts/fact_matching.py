"""Decide when two statements say the same, and when one makes the other untrue.

Two texts can be near to each other and say the opposite ("my PIN is 1234", "my PIN is 1235"): so
nearness alone never makes them the same. Numbers and negations must agree too, and the new one must have no
telling word that the other lacks (`memory.facts.own_words`). And two texts about
the same thing can both be true ("my cat is old", "my cat is black"): so only what has one value at
a time, and a plain denial, contradicts.
"""

import hashlib
import re
import unicodedata
from typing import Final

from amber.lib.search.stems import rough_stem
from memory.facts.attributes import attribute_of

NEAR_SAME: Final = 0.95
"""Cosine similarity from which two statements say the same, if numbers and negations agree."""

_NOT_WORDS = re.compile(r"[\W_]+")
_NUMBERS = re.compile(r"\d+")
_NEGATIONS = re.compile(
    r"\b(?:not|no|never|nor|without|cannot|\w+n't|\w+n’t|hardly|stopped|former(?:ly)?)\b|[不没無无未别]"
)
_DENIALS = re.compile(r"\b(?:(?:do|does|did|is|are|was)(?:n['’]t|\s+not)|no longer|not|never)\b")
_AUXILIARIES: Final = frozenset({"do", "does", "did", "anymore", "any", "more"})


def fingerprint(statement: str) -> str:
    """Return the MD5 of the words without case and punctuation: equal for the same words."""
    return hashlib.md5(
        _plain(statement).encode("utf-8", "replace"), usedforsecurity=False
    ).hexdigest()


def can_be_same(one: str, other: str) -> bool:
    """Return whether nearness may make these the same: all numbers and negation must agree."""
    has_same_numbers = _NUMBERS.findall(one) == _NUMBERS.findall(other)
    return has_same_numbers and is_negated(one) == is_negated(other)


def is_negated(statement: str) -> bool:
    return _NEGATIONS.search(statement.casefold()) is not None


def contradicts(one: str, other: str) -> bool:
    """Return whether both cannot be true: another value of a thing that has one, or a denial."""
    if fingerprint(one) == fingerprint(other):
        return False
    mine, yours = attribute_of(one), attribute_of(other)
    if mine is not None and yours is not None and mine.is_other_value_of(yours):
        return True
    return _denies(one, other)


def _plain(statement: str) -> str:
    return _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", statement).casefold()).strip()


def _denies(one: str, other: str) -> bool:
    """Return whether one denies the other: "I eat meat", "I don't eat meat"; "我吃肉", "我不吃肉"."""
    said, denied = _core(one), _core(other)
    return said[0] == denied[0] and said[1] != denied[1]


def _core(statement: str) -> tuple[str, bool]:
    """Return the stemmed words without negation, and whether there was a negation."""
    text = unicodedata.normalize("NFKC", statement).casefold()
    rest = re.sub(r"[不没]", "", _DENIALS.sub(" ", text))
    words = (word for word in _plain(rest).split() if word not in _AUXILIARIES)
    return " ".join(map(rough_stem, words)), rest != text
