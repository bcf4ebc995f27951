"""Describe what a text is about by plain features: words, word beginnings, CJK bigrams.

Pure. For the built-in offline model and embedder only; full-text search has its own, more exact
tokens (`amber.lib.search.words`).
"""

import re
import unicodedata

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")
STEM_CHARS = 5
"""Words that share a beginning of this length mostly share their meaning (English, German)."""

COMMON_WEIGHT = 0.1
STEM_WEIGHT = 0.5
_COMMON_WORDS = """
a about after all also am an and any are as at be been but by can could did do does for from had
has have he her him his how i if in into is it its just me more most my no not of on or our out
over say says she should so some such tell than that the their them then there these they this
to too up us was we were what when where which while who why will with would you your please
的 了 是 在 我 你 他 吗 呢 什么 怎么
"""
COMMON_WORDS = frozenset(_COMMON_WORDS.split())
"""What nearly every text holds, so that it tells nothing."""


def features(text: str) -> dict[str, float]:
    """Map features to weights, in order of appearance; weights add up over occurrences."""
    weights: dict[str, float] = {}
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        for feature, weight in _of_run(run):
            weights[feature] = weights.get(feature, 0.0) + weight
    return weights


def _of_run(run: str) -> list[tuple[str, float]]:
    if _IS_CJK.match(run):
        pairs = [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        return [(pair, COMMON_WEIGHT if pair in COMMON_WORDS else 1.0) for pair in pairs]
    if run in COMMON_WORDS:
        return [(run, COMMON_WEIGHT)]
    stem = [(f"{run[:STEM_CHARS]}…", STEM_WEIGHT)] if len(run) > STEM_CHARS else []
    return [(run, 1.0), *stem]


def is_spaceless(word: str) -> bool:
    """Return whether it is of a script written without spaces between words."""
    return _IS_CJK.match(word) is not None


def overlap(question: dict[str, float], text: str) -> float:
    """Return how much of the question's weight occurs in the text, 0 to 1."""
    total = sum(question.values())
    found = features(text)
    return sum(w for f, w in question.items() if f in found) / total if total else 0.0
