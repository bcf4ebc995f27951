"""Decide whether the best that was found has anything to do with the question.

A ranking always has a first. A gate looks at what speaks for it: the share of the question it holds, and
how far it stands out of all texts. Pure. What a gate asks for is measured by whoever makes one
(`bench/quality`). How many rare words meet in a text was tried, too: beside the share it told nothing more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.relevance.measures import coverage, idf
from engine.text.lexical import is_spaceless


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a text.

    `coverage`: the share of the question's words it holds, by rarity, 0 to 1. `margin`: by how many
    standard deviations its similarity lies above those of all texts. `names_speaker`: the question names
    one of those who speak in them.
    """

    coverage: float = 0.0
    margin: float = 0.0
    names_speaker: bool = False


@dataclass(frozen=True, slots=True)
class Gate:
    """What is asked of a text that is shown: enough of each of these."""

    coverage: float = 0.0
    margin: float = 0.0

    def lets_in(self, evidence: Evidence) -> bool:
        return evidence.coverage >= self.coverage and evidence.margin >= self.margin


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """A question's words, and in how many of all `total` texts each of them is (0: in none).

    `absent` is the weight of a word that no text has, if one that a single text has weighs 1; `absent_pair` is
    that of two characters of a script without spaces. Such a word ranks nothing, but it says that the question
    may be about something else. `emphasis` is how much more, or less, than others a word counts. `doubt` is
    a number of imagined words, of the question's usual weight, that no text has: texts match much of a short
    question by chance.
    """

    counts: Mapping[str, int]
    total: int
    absent: float = 1.0
    absent_pair: float = 1.0
    emphasis: Mapping[str, float] = field(default_factory=dict)
    doubt: float = 0.0

    def weight(self, word: str) -> float:
        """Return a word's weight: its rarity, with its emphasis."""
        emphasis = self.emphasis.get(word, 1.0)
        if self.counts[word]:
            return emphasis * idf(self.counts[word], self.total)
        share = self.absent_pair if is_spaceless(word) else self.absent
        return emphasis * share * idf(1, self.total)

    def share_of(self, held: float) -> float:
        """Return the share of the question that words of this weight are, 0 to 1.

        With doubt d it is the share times n / (n + d), where n is the effective number of words
        (https://en.wikipedia.org/wiki/Effective_number_of_parties#Laakso%E2%80%93Taagepera_index).
        """
        weights = [self.weight(word) for word in self.counts]
        asked = sum(weights)
        usual = sum(weight**2 for weight in weights) / asked if asked else 0.0
        return coverage(held, asked + self.doubt * usual)

    def share_known(self) -> float:
        """Return the share of the question that any text has, 0 to 1."""
        return self.share_of(sum(self.weight(word) for word, count in self.counts.items() if count))
