"""Rank texts by the words of a question: BM25.

    score = sum over words of idf · tf (k1 + 1) / (tf + k1 (1 - b + b · length / mean length))

(Robertson and Zaragoza, https://www.staff.city.ac.uk/~sbrp622/papers/foundations_bm25_review.pdf.)
`engine.relevance.measures.idf` is the idf. Pure: which texts there are, and how their words are
stored, is the caller's. What is relevant enough is decided by `engine.relevance.gates`.
"""

from collections.abc import Hashable, Mapping
from typing import Final, TypeVar

Word = TypeVar("Word", bound=Hashable)

K1: Final = 1.2
"""How soon more of a word adds nothing. The textbook's, fitted to nothing here, as B:
https://nlp.stanford.edu/IR-book/html/htmledition/okapi-bm25-a-non-binary-model-1.html."""

B: Final = 0.75
"""How much length speaks against a text, 0 to 1."""

COMMON_SHARE: Final = 0.3
"""What a word such as "what" or "the" weighs, where another has 1. Measured in libraries: recall@1 of
English questions 92.9 -> 93.9, Cranfield's recall@10 38.4 -> 39.4; Chinese unharmed."""


def score(
    weights: Mapping[Word, float],
    occurrences: Mapping[Word, float],
    *,
    length: float,
    mean_length: float,
) -> float:
    """Return a text's score, 0 or more. `weights` are the question's words with their idf;
    `occurrences` counts each word in the text, and lengths are in words."""
    damping = K1 * (1 - B + B * (length / mean_length if mean_length > 0 else 1.0))
    return sum(
        weight * count * (K1 + 1) / (count + damping)
        for word, weight in weights.items()
        if (count := occurrences.get(word, 0)) > 0
    )
