"""Rank texts by the words of a question: BM25.

    score = sum over words of idf · tf (k1 + 1) / (tf + k1 (1 - b + b · length / mean length))

(Robertson and Zaragoza, https://www.staff.city.ac.uk/~sbrp622/papers/foundations_bm25_review.pdf.)
`engine.relevance.measures.idf` is the idf. Pure: which texts there are, and how their words are
stored, is the caller's. What is relevant enough is decided by `engine.relevance.gates`.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from engine.relevance.measures import idf

Word = TypeVar("Word", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Saturation:
    """How soon more of a word adds nothing (`k1`), and how much length speaks against a text (`b`,
    0 to 1)."""

    k1: float
    b: float

    def of(self, occurrences: float, length: float, mean_length: float) -> float:
        """Return what occurrences are worth: 0 for none, below k1 + 1 however many."""
        if occurrences <= 0:
            return 0.0
        relative = length / mean_length if mean_length > 0 else 1.0
        damping = self.k1 * (1 - self.b + self.b * relative)
        return occurrences * (self.k1 + 1) / (occurrences + damping)


TEXTBOOK: Final = Saturation(k1=1.2, b=0.75)
"""https://nlp.stanford.edu/IR-book/html/htmledition/okapi-bm25-a-non-binary-model-1.html: fitted to
nothing here."""

COMMON_SHARE: Final = 0.3
"""What a word such as "what" or "the" weighs, where another has 1. Measured in libraries: recall@1 of
English questions 92.9 -> 93.9, Cranfield's recall@10 38.4 -> 39.4; Chinese unharmed."""


def word_weights(
    counts: Mapping[str, int], total: int, *, common: Iterable[str] = ()
) -> dict[str, float]:
    """Return the weight of each word of a question: its idf, of a common word a part of it.

    `counts` says how many of `total` texts have the word; one that none has is left out: it ranks
    nothing.
    """
    dull = frozenset(common)
    return {
        word: idf(count, total) * (COMMON_SHARE if word in dull else 1.0)
        for word, count in counts.items()
        if count > 0
    }


def score(
    weights: Mapping[Word, float],
    occurrences: Mapping[Word, float],
    *,
    length: float,
    mean_length: float,
    saturation: Saturation = TEXTBOOK,
) -> float:
    """Return a text's score, 0 or more. `occurrences` counts each word in it; lengths are in
    words."""
    return sum(
        weight * saturation.of(occurrences[word], length, mean_length)
        for word, weight in weights.items()
        if word in occurrences
    )


NEIGHBOUR_SHARE: Final = 0.5
"""What a neighbour's score adds. A question and its answer stand in two messages, and only one of them
has the words. Measured on English conversations, words alone: 25 messages that were ranked alone
hold 76.0% of the evidence, with half of each neighbour 83.7%."""


def with_neighbours(scores: Sequence[float], share: float = NEIGHBOUR_SHARE) -> list[float]:
    """Return each score with a share of those right before and right after it."""
    if not scores:
        return []
    padded = [0.0, *scores, 0.0]
    return [
        padded[at] + share * (padded[at - 1] + padded[at + 1]) for at in range(1, len(padded) - 1)
    ]
