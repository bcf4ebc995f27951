"""Decide which earlier parts of a conversation, or memories, matter to a question.

Pure: texts come with how near they are to the question by meaning (cosine similarity) and by
words (which of the question's words they hold). Words count by how rare they are among all
of them (idf); a similarity counts by how far it stands out of all similarities there, because
no threshold on cosines holds for two embedding models. Nothing relevant is a valid outcome.

Robertson and Sparck Jones' idf:
https://nlp.stanford.edu/IR-book/html/htmledition/okapi-bm25-a-non-binary-model-1.html
"""

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from engine.text.lexical import features, is_spaceless
from engine.text.small_talk import is_small_talk

Key = TypeVar("Key", bound=Hashable)

MIN_RELEVANCE: Final = 0.35
"""The least relevance, of 0 to 1: about a third of the question's rare words, or a similarity that
stands well out."""

STANDOUT: Final = (2.0, 5.0)
"""Standard deviations above the mean similarity that count as nothing, and as everything."""

MIN_DEVIATION: Final = 0.05
"""The least deviation to reckon with: among similar texts one stands out by chance by less."""

MIN_CROWD: Final = 12
"""The fewest similarities whose spread tells anything; fewer are measured on FEW_SIMILARITY."""

FEW_SIMILARITY: Final = (0.35, 0.75)
"""Cosines that count as nothing and as everything where there is no crowd to compare with."""

ABSENT_PAIR_WEIGHT: Final = 0.2
"""The weight of an absent pair: in Chinese about every second one joins two words by chance."""

LEAST_TOTAL: Final = 20
"""Among two or three texts nothing is rare: they are weighted as if there were this many."""

ENOUGH_FEATURES: Final = 4
ENOUGH_ALONE: Final = 3
LOOK_BACK: Final = 3
"""A question of fewer words is read with those before it, at most this many. One that points at
nothing before it ("How do I cook risotto with mushrooms?") needs one word less."""

_POINTS_BACK = re.compile(
    r"^\W*(?:and|but|or|so|then|also|what about|how about)\b|"
    r"\b(?:it|its|that|this|these|those|they|them|their|he|him|his|she|her|there|one|ones|same|"
    r"other|others|another|former|latter|instead|again)\b|[那这它他她其另呢]|前面|上面|刚才",
    re.IGNORECASE,
)


class WordScores(Protocol[Key]):
    """The question's words in each text, and in how many of all `total` texts each word is."""

    @property
    def held(self) -> Mapping[Key, frozenset[str]]: ...
    @property
    def frequencies(self) -> Mapping[str, int]: ...
    @property
    def total(self) -> int: ...


class VectorScores(Protocol[Key]):
    """Cosine similarities of the nearest texts; count, mean and deviation of all there are."""

    @property
    def similarities(self) -> Mapping[Key, float]: ...
    @property
    def count(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def deviation(self) -> float: ...


def relevances(
    words: WordScores[Key], meaning: VectorScores[Key], *, least: float = MIN_RELEVANCE
) -> dict[Key, float]:
    """Return the texts that matter, each with its relevance from `least` to 1, best first.

    A text is as relevant as its stronger score, and a little more when the other one agrees.
    """
    weights = {
        word: _idf(count, words.total) * (1 if count else _weight_if_absent(word))
        for word, count in words.frequencies.items()
    }
    keys = [*words.held, *(key for key in meaning.similarities if key not in words.held)]
    scored = {
        key: _both(_coverage(words.held.get(key, frozenset()), weights), _nearness(key, meaning))
        for key in keys
    }
    best = sorted(keys, key=lambda key: (-scored[key], str(key)))
    return {key: scored[key] for key in best if scored[key] >= least}


def choose(
    relevant: Mapping[Key, float], costs_tokens: Mapping[Key, int], *, limit_tokens: int
) -> tuple[list[Key], list[Key]]:
    """Return what is taken, and what is relevant but left out, both best first.

    Takes while the budget lasts; a large one that does not fit does not keep a smaller one out.
    Keys without a cost have been deleted meanwhile, and are in neither.
    """
    taken: list[Key] = []
    left_out: list[Key] = []
    rest = limit_tokens
    for key in relevant:
        if key not in costs_tokens:
            continue
        fits = costs_tokens[key] <= rest
        (taken if fits else left_out).append(key)
        rest -= costs_tokens[key] if fits else 0
    return taken, left_out


def question_of(asked: Sequence[str], *, max_chars: int = 2_000) -> str:
    """Return the text to search by: the user's last message, with earlier ones while it says
    little.

    `asked` are the user's messages, oldest first. "And in 2023?" means nothing alone. Empty for
    small talk.
    """
    if not asked or is_small_talk(asked[-1]):
        return ""
    enough = ENOUGH_FEATURES if _POINTS_BACK.search(asked[-1]) else ENOUGH_ALONE
    text = ""
    for earlier in asked[: -LOOK_BACK - 1 : -1]:
        text = f"{earlier.strip()[:max_chars]}\n{text}".strip()
        if sum(weight >= 1 for weight in features(text).values()) >= enough:
            break
    return text[-max_chars:]


def _idf(count: int, total: int) -> float:
    total = max(total, LEAST_TOTAL)
    return math.log(1 + (max(total - count, 0) + 0.5) / (count + 0.5))


def _weight_if_absent(word: str) -> float:
    """Return the weight of a word that no text holds; a pair of characters most likely spans
    two."""
    return ABSENT_PAIR_WEIGHT if is_spaceless(word) else 1.0


def _coverage(held: frozenset[str], weights: Mapping[str, float]) -> float:
    """Return the share of the question's weight that the text holds."""
    whole = sum(weights.values())
    return min(sum(weights.get(word, 0.0) for word in held) / whole, 1.0) if whole else 0.0


def _nearness(key: Key, meaning: VectorScores[Key]) -> float:
    similarity = meaning.similarities.get(key)
    if similarity is None:
        return 0.0
    if meaning.count < MIN_CROWD:
        return _between(similarity, *FEW_SIMILARITY)
    deviation = max(meaning.deviation, MIN_DEVIATION)
    return _between((similarity - meaning.mean) / deviation, *STANDOUT)


def _between(value: float, nothing: float, everything: float) -> float:
    return min(max((value - nothing) / (everything - nothing), 0.0), 1.0)


def _both(one: float, other: float) -> float:
    """Combine scores as the probability that either is right, the weaker counting a quarter."""
    strong, weak = max(one, other), min(one, other)
    return 1 - (1 - strong) * (1 - weak / 4)
