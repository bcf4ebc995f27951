"""Decide whether the best that was found has anything to do with the question.

A ranking always has a first. A gate looks at what speaks for it: the share of the question it holds,
how many of its rare words meet there, how far it stands out of all texts. Pure. What a gate asks for
is measured by whoever makes one (`bench/quality`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from engine.relevance.measures import coverage, idf


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a text.

    `coverage`: the share of the question's words it holds, by rarity, 0 to 1. `rare_words`: how many
    rare ones. `margin`: by how many standard deviations its score lies above those of all texts.
    """

    coverage: float = 0.0
    rare_words: int = 0
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Gate:
    """What is asked of a text that is shown: enough of each of these."""

    coverage: float = 0.0
    rare_words: int = 0
    margin: float = 0.0

    def lets_in(self, evidence: Evidence) -> bool:
        return (
            evidence.coverage >= self.coverage
            and evidence.rare_words >= self.rare_words
            and evidence.margin >= self.margin
        )


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """A question's words, and in how many of all `total` texts each of them is (0: in none).

    `absent` is what a word weighs that no text has, as a share of the weight of one that a single
    text has. Such a word ranks nothing, but it says that the question may be about something else.
    """

    counts: Mapping[str, int]
    total: int
    absent: float = 1.0

    def weight(self, word: str) -> float:
        """Return a word's weight: its rarity."""
        count = self.counts[word]
        return idf(count, self.total) if count else idf(1, self.total) * self.absent

    def share_of(self, held: Collection[str]) -> float:
        """Return the share of the question's weight that these words have, 0 to 1."""
        mine = sum(self.weight(word) for word in self.counts if word in held)
        return coverage(mine, sum(map(self.weight, self.counts)))

    def rare_in(self, held: Collection[str], *, share: float) -> int:
        """Count the words among these that at most such a share of all texts has."""
        most = max(1.0, share * self.total)
        return sum(1 for word, count in self.counts.items() if word in held and 0 < count <= most)
