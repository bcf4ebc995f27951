"""Choose the part of a passage that is shown: of a weaker one less, around the question's words.

Ranking wants a chunk's worth of words; a reader wants the sentences that answer. So a chunk that is
as good as the best is shown whole, others the less the further they fall behind: the stretch of whole
sentences, rows or lines that holds most of the question's rare words. A passage that only vectors
found is shown whole, since nothing tells where in it the answer is.

What this does to recall and precision of the text shown is in docs/retrieval.md. Pure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from amber.lib.search.languages import language_of
from amber.lib.search.stems import stem
from amber.lib.search.words import stored_words
from libraries.chunking.text_pieces import pieces_of

POWER: Final = 1.5
"""A chunk is shown by this power of its strength, where the best has 1. With 1 the recall of the text
shown is 0.4 points higher and precision a tenth lower, with 2 it is 1.2 lower and a tenth higher."""

PIECE_CHARS: Final = 600
"""Sentences, tables and blocks of code up to this length stay whole."""

AGAIN: Final = 0.3
"""What a question's word adds that the stretch holds already."""


@dataclass(frozen=True, slots=True)
class _HeldSpan:
    """A sentence, row or line: `text[start:end]`, and which of the question's words it holds."""

    start: int
    end: int
    held: frozenset[str]


def shown_share(strength: float) -> float:
    """Return how much is shown of a chunk: 1 is all of it."""
    return float(min(1.0, max(0.0, strength)) ** POWER)


def best_stretch(text: str, weights: Mapping[str, float], *, limit_chars: int) -> tuple[int, int]:
    """Return start and end of the stretch with the most of the question's weight.

    `weights` are of stems, in all forms that texts hold. At least one sentence, however long; all
    of the text if it fits, or has none of the words.
    """
    if len(text) <= limit_chars:
        return 0, len(text)
    parts = _parts(text, weights, limit_chars)
    if not any(part.held for part in parts):
        return 0, len(text)
    best, best_value = (parts[0], parts[0]), -1.0
    for at, first in enumerate(parts):
        for last, value in _growing(parts[at:], weights, limit_chars):
            if value > best_value:
                best, best_value = (first, last), value
    return _without_margins(text, best[0].start, best[1].end)


def _growing(
    parts: Sequence[_HeldSpan], weights: Mapping[str, float], limit_chars: int
) -> list[tuple[_HeldSpan, float]]:
    """Return what each stretch that begins here is worth, with its last part.

    Of two with the same words the longer one is better, by a little.
    """
    grown: list[tuple[_HeldSpan, float]] = []
    held: set[str] = set()
    again = 0.0
    for part in parts:
        chars = part.end - parts[0].start
        if grown and chars > limit_chars:
            break
        held |= part.held
        again += sum(weights[word] for word in part.held)
        value = sum(weights[word] for word in held) + AGAIN * again
        grown.append((part, value + 1e-3 * min(1.0, chars / max(1, limit_chars))))
    return grown


def _parts(text: str, weights: Mapping[str, float], limit_chars: int) -> list[_HeldSpan]:
    spans = _spans(text, max(limit_chars, PIECE_CHARS))
    words = [Counter(stored_words(text[start:end])) for start, end in spans]
    language = language_of(sum(words, Counter()))
    return [
        _HeldSpan(start, end, frozenset(stem(word, language) for word in each) & weights.keys())
        for (start, end), each in zip(spans, words, strict=True)
    ]


def _spans(text: str, most_chars: int) -> list[tuple[int, int]]:
    """Cut the text into sentences, rows and lines. A semicolon, at which chunks may end, ends none."""
    spans: list[tuple[int, int]] = []
    start = None
    for piece in pieces_of(text, size_tokens=most_chars, count=len, is_source=False):
        start = piece.start if start is None else start
        is_clause = text[start : piece.end].rstrip().endswith(_CLAUSE_ENDS)
        if not is_clause or piece.end - start > most_chars:
            spans.append((start, piece.end))
            start = None
    return spans if start is None else [*spans, (start, len(text))]


_CLAUSE_ENDS: Final = ("；", "…")


def _without_margins(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out white space at both ends."""
    stretch = text[start:end]
    return start + len(stretch) - len(stretch.lstrip()), start + len(stretch.rstrip())
