"""Decide which memories matter to a question, and how much: by words, and by nearness of meaning.

The question says how strict to be. One that speaks of whoever asks ("Who is my dentist?") is mostly
about what is known of them. Most that do not ("How does a heat pump work?") are about the world, and
what little they share with a memory is chance: these must share more.

- **Words**: the share of the question's words that a memory holds, by rarity among the memories, and
  less by general words (`memory.recall.general_words`).
- **Meaning**: how far the similarity lies on the way from chance to an answer, on the embedding model's
  own scale (`memory.recall.floors`); until that is measured, how far it stands out of the person's other
  memories.

Pure. What the numbers reach, and why they were chosen: docs/memory.md; `bench/quality` measures it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Final
from uuid import UUID

from amber.lib.search.hybrid import KeywordMatches, NearestVectors
from engine.relevance.measures import FEW_SIMILARITY, MIN_CROWD, coverage, idf, ramp
from engine.text.lexical import is_spaceless
from engine.text.question_forms import is_about_speaker
from memory.recall.floors import NearnessScale
from memory.recall.general_words import generality

FEWEST: Final = 20
"""Among fewer memories words weigh as if there were so many: among two or three nothing is rare."""

ABSENT_PAIR: Final = 0.2
"""What a pair of characters weighs that no memory holds, where an absent word has 1: about every second
pair joins two words by chance."""

CLEAR_ANSWER: Final = 2.0
"""The share of the way from chance to a usual answer that counts as full relevance."""

LIKELY: Final = 0.5
NEAREST: Final = 3
"""Memories below this share of the way count only if they are among so many nearest: most paraphrases that lie
so low are the nearest there is, and all others would be shown for nothing."""

LEFT_OUT: Final = 3
"""The nearest memories, which are left out when it is measured how near all others lie."""


@dataclass(frozen=True, slots=True)
class Strictness:
    """What a memory needs at least.

    `least` is a relevance, of 0 to 1; `nearness` a share of the way from chance to an answer;
    `standout` what is asked instead while the model's scale is unknown: deviations above the other
    memories that count as `least`, and as 1.
    """

    least: float
    nearness: float
    standout: tuple[float, float]


ABOUT_SPEAKER: Final = Strictness(least=0.25, nearness=0.25, standout=(3.5, 8.0))
ABOUT_WORLD: Final = Strictness(least=0.35, nearness=0.75, standout=(7.0, 12.0))


def relevances(
    question: str,
    words: KeywordMatches,
    vectors: NearestVectors,
    *,
    scale: NearnessScale | None = None,
    is_personal: bool | None = None,
) -> dict[UUID, float]:
    """Return the memories that matter, each with its relevance up to 1, best first.

    `scale` is the embedding model's for the question's script, None while it is not known.
    `is_personal` says whether the text is about whoever asks; None: it shows. A memory is as relevant as
    its stronger side says, and a little more when the other agrees.
    """
    is_personal = is_about_speaker(question) if is_personal is None else is_personal
    strict = ABOUT_SPEAKER if is_personal else ABOUT_WORLD
    by_words = _coverages(words, is_personal=is_personal)
    by_meaning = _nearnesses(vectors, strict, scale)
    scored = {
        pk: _either(by_words.get(pk, 0.0), by_meaning.get(pk, 0.0))
        for pk in {**by_words, **by_meaning}
    }
    best = sorted(scored, key=lambda pk: (-scored[pk], str(pk)))
    return {pk: scored[pk] for pk in best if scored[pk] >= strict.least}


def _coverages(words: KeywordMatches, *, is_personal: bool) -> dict[UUID, float]:
    """Return the share of the question that each memory holds.

    A general word speaks for a memory only in a personal question ("Which club do I support?"), and
    against none that lacks it.
    """
    total = max(words.total, FEWEST)
    weights = {}
    for word, count in words.frequencies.items():
        weight = idf(count, total) * (ABSENT_PAIR if is_spaceless(word) and not count else 1.0)
        is_full = is_personal and count and not is_spaceless(word)
        weights[word] = weight if is_full else weight * generality(word)
    whole = sum(weights.values())
    return {
        pk: coverage(sum(weights.get(word, 0.0) for word in held), whole)
        for pk, held in words.held.items()
    }


def _nearnesses(
    vectors: NearestVectors, strict: Strictness, scale: NearnessScale | None
) -> Mapping[UUID, float]:
    """Return what each similarity is worth as a relevance: `strict.least` at the least that counts."""
    if scale is not None:
        if not scale.is_known:
            return {}
        shares = {pk: scale.share_of(near) for pk, near in vectors.similarities.items()}
        first = sorted(shares, key=lambda pk: -shares[pk])[:NEAREST]
        likely = {pk: share for pk, share in shares.items() if share >= LIKELY or pk in first}
        return _spread_over(likely, strict.least, (strict.nearness, CLEAR_ANSWER))
    if vectors.count < MIN_CROWD:
        few = vectors.similarities if strict is ABOUT_SPEAKER else {}
        return {pk: ramp(near, *FEW_SIMILARITY) for pk, near in few.items()}
    mean, deviation = _spread_of_others(vectors)
    if deviation <= 0:
        return {}
    outs = {pk: (near - mean) / deviation for pk, near in vectors.similarities.items()}
    return _spread_over(outs, strict.least, strict.standout)


def _spread_over(
    values: Mapping[UUID, float], least: float, span: tuple[float, float]
) -> dict[UUID, float]:
    """Map values from the beginning of the span to its end to relevances from `least` to 1."""
    begin, end = span
    return {
        pk: least + (1 - least) * ramp(value, begin, end)
        for pk, value in values.items()
        if value >= begin
    }


def _spread_of_others(vectors: NearestVectors) -> tuple[float, float]:
    """Return mean and deviation of all similarities but the LEFT_OUT highest."""
    highest = sorted(vectors.similarities.values(), reverse=True)[:LEFT_OUT]
    rest = vectors.count - len(highest)
    mean = (vectors.count * vectors.mean - sum(highest)) / rest
    squares = vectors.count * (vectors.deviation**2 + vectors.mean**2)
    squares -= sum(near**2 for near in highest)
    return mean, sqrt(max(squares / rest - mean**2, 0.0))


def _either(one: float, other: float) -> float:
    """Combine scores as the probability that either is right, the weaker counting a quarter."""
    strong, weak = max(one, other), min(one, other)
    return 1 - (1 - strong) * (1 - weak / 4)
