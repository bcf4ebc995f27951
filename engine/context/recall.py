"""Decide which earlier parts of a conversation, or memories, matter to a question.

Pure: texts come with how near they are to the question by meaning (cosine similarity) and by
words (which of the question's words they hold); what either is worth is `engine.relevance.measures`'s.
Nothing relevant is a valid outcome.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from engine.relevance.measures import EARLIER_TALK, Crowd, RelevanceScale, coverage, idf, standout
from engine.text.lexical import features, is_spaceless
from engine.text.small_talk import is_small_talk
from engine.text.speaker import is_about_speaker

Key = TypeVar("Key", bound=Hashable)

ENOUGH_FEATURES: Final = 4
ENOUGH_ALONE: Final = 3
ENOUGH_OF_SPEAKER: Final = 1
LOOK_BACK: Final = 3
"""A question of fewer words is read with those before it, at most this many. One that points at
nothing before it ("How do I cook risotto with mushrooms?") needs one word less, and one of whoever asks
("Who is my dentist?") a single one: what was asked before would only drown it."""

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


class VectorScores(Crowd, Protocol[Key]):
    """Cosine similarities of the nearest texts; count, mean and deviation of all there are."""

    @property
    def similarities(self) -> Mapping[Key, float]: ...


def relevances(
    words: WordScores[Key], vectors: VectorScores[Key], *, scale: RelevanceScale = EARLIER_TALK
) -> dict[Key, float]:
    """Return the texts that matter, each with its relevance from `scale.least` to 1, best first.

    A text is as relevant as its stronger score, and a little more when the other one agrees.
    """
    total = max(words.total, scale.least_total)
    weights = {
        word: idf(count, total) * scale.weigh_absence(count, is_pair=is_spaceless(word))
        for word, count in words.frequencies.items()
    }
    whole = sum(weights.values())
    similarities = vectors.similarities
    scored: dict[Key, float] = {}
    for key in [*words.held, *(key for key in similarities if key not in words.held)]:
        held = sum(weights.get(word, 0.0) for word in words.held.get(key, ()))
        near = standout(similarities[key], vectors, scale) if key in similarities else 0.0
        scored[key] = _both(coverage(held, whole), near)
    best = sorted(scored, key=lambda key: (-scored[key], str(key)))
    return {key: scored[key] for key in best if scored[key] >= scale.least}


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
    enough = _enough_features(asked[-1])
    text = ""
    for earlier in asked[: -LOOK_BACK - 1 : -1]:
        text = f"{earlier.strip()[:max_chars]}\n{text}".strip()
        if _count_features(text) >= enough:
            break
    return text[-max_chars:]


def question_alone(asked: str) -> str:
    """Return what `question_of` returns for a message, whatever was asked before; empty if that matters,
    and for small talk."""
    return question_of([asked]) if _count_features(asked) >= _enough_features(asked) else ""


def _enough_features(asked: str) -> int:
    """Return how many words make a question that can be searched for without those before it."""
    if _POINTS_BACK.search(asked):
        return ENOUGH_FEATURES
    return ENOUGH_OF_SPEAKER if is_about_speaker(asked) else ENOUGH_ALONE


def _count_features(text: str) -> int:
    return sum(weight >= 1 for weight in features(text).values())


def _both(one: float, other: float) -> float:
    """Combine scores as the probability that either is right, the weaker counting a quarter."""
    strong, weak = max(one, other), min(one, other)
    return 1 - (1 - strong) * (1 - weak / 4)
