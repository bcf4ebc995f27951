"""Make one ranking of several: by adding deviations, or by ranks.

Scores of words and similarities of vectors have no common unit. Where both are known of all texts
(a chat's messages, a person's memories) both are counted in standard deviations and added. Where
each retriever shows only its best hits (libraries) ranks are all there is. Pure.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Self, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Spread:
    """The count, mean and standard deviation of some values."""

    count: int
    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Iterable[float], *, zeros: int = 0) -> Self:
        """Measure values, and `zeros` more that are 0 and were not handed over."""
        known = list(values)
        count = len(known) + zeros
        if not count:
            return cls(0, 0.0, 0.0)
        mean = sum(known) / count
        squares = sum((value - mean) ** 2 for value in known) + zeros * mean**2
        return cls(count, mean, sqrt(squares / count))


def reciprocal_ranks(
    rankings: Iterable[tuple[Sequence[Key], float]], *, k: float
) -> dict[Key, float]:
    """Return the sum of weight / (k + rank) over rankings, each best first.

    (Cormack et al., https://plg.uwaterloo.ca/~gvcormac/cormacksigir09-rrf.pdf; there k is 60.)
    """
    fused: dict[Key, float] = {}
    for ranking, weight in rankings:
        for rank, key in enumerate(ranking, 1):
            fused[key] = fused.get(key, 0.0) + weight / (k + rank)
    return fused
