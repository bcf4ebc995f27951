"""Measure how far a text matters to a question, by the question's words and by similarity.

    idf      = ln(1 + (N - n + 0.5) / (n + 0.5)), where n of N texts have the word
    coverage = the share of the question's words, so weighed, that the text holds
    standout = how many deviations its similarity lies above that of all texts, as a share

Robertson and Sparck Jones' idf:
https://nlp.stanford.edu/IR-book/html/htmledition/okapi-bm25-a-non-binary-model-1.html. Similarities
are compared with each other because no threshold on cosines holds for two embedding models.

Pure. Where each kind of text differs is in its `RelevanceScale`. How words and vectors become one
ranking is decided by `engine.context.recall` (a few texts of one person) and by
`libraries.retrieval.ranking` (many passages, and retrievers that may be no good).
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol

MIN_CROWD: Final = 12
"""The fewest similarities whose spread tells anything; fewer are measured on FEW_SIMILARITY."""

FEW_SIMILARITY: Final = (0.35, 0.75)
"""Cosines that count as nothing and as everything where there is no crowd to compare with. They fit
most embedding models badly, and none worse than nothing."""

MIN_DEVIATION: Final = 0.05
"""The least deviation to reckon with: among similar texts one stands out by chance by less."""


@dataclass(frozen=True, slots=True)
class RelevanceScale:
    """What counts as relevant among texts of one kind.

    `least` is the least relevance, of 0 to 1, that is worth showing. `standout`: deviations above
    the mean similarity that count as nothing, and as everything; the deviation is at least
    `least_deviation`, and that of all other texts if `leaves_itself_out`. `absent_pair` weighs a
    pair of characters of a script without spaces that no text holds, where an absent word has 1:
    about every second pair joins two words by chance. Among fewer texts than `least_total` words
    weigh as if there were so many, and among at most `few` a word that none holds weighs no more
    than one that a single text holds: of so few texts it tells little.
    """

    least: float
    standout: tuple[float, float]
    absent_pair: float
    least_deviation: float = 0.0
    leaves_itself_out: bool = False
    least_total: int = 0
    few: int = 0

    def rarity(self, count: int, total: int) -> float:
        """Return the idf of a word that `count` of `total` texts hold, as far as they are enough to
        tell."""
        known = max(count, 1) if total <= self.few else count
        return idf(known, max(total, self.least_total))

    def weigh_absence(self, count: int, *, is_pair: bool) -> float:
        """Return the share of its idf that a word weighs which `count` texts hold."""
        return self.absent_pair if is_pair and not count else 1.0


PASSAGES: Final = RelevanceScale(
    least=0.3,  # docs/retrieval.md
    standout=(3.0, 7.0),
    absent_pair=0.5,  # Chinese and English questions reach the same coverage: 5% less than 0.35
    leaves_itself_out=True,
    least_total=20,  # one document, and questions to it: 27% were found relevant, now 94%
    few=4,
)


class Crowd(Protocol):
    """The count, mean and deviation of the similarities of all texts."""

    @property
    def count(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def deviation(self) -> float: ...


def idf(count: int, total: int) -> float:
    """Return what a word weighs that `count` of `total` texts hold."""
    return math.log(1 + (max(total - count, 0) + 0.5) / (count + 0.5))


def coverage(held: float, whole: float) -> float:
    """Return the share of the question's weight that a text holds."""
    return min(held / whole, 1.0) if whole else 0.0


def standout(similarity: float, crowd: Crowd, scale: RelevanceScale) -> float:
    """Return how far a similarity stands out of all, from 0 to 1."""
    if crowd.count < MIN_CROWD:
        return ramp(similarity, *FEW_SIMILARITY)
    mean, deviation = crowd.mean, crowd.deviation
    if scale.leaves_itself_out:
        rest = crowd.count - 1
        mean = (crowd.count * mean - similarity) / rest
        variance = crowd.count / rest * (deviation**2 - (similarity - crowd.mean) ** 2 / rest)
        deviation = math.sqrt(max(variance, 0.0))
    deviation = max(deviation, scale.least_deviation)
    return ramp((similarity - mean) / deviation, *scale.standout) if deviation > 0 else 0.0


def ramp(value: float, low: float, high: float) -> float:
    """Return 0 up to `low`, 1 from `high` on, and a straight line between."""
    return min(1.0, max(0.0, (value - low) / (high - low)))
