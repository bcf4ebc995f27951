"""Which earlier parts of a conversation, or memories, matter to a question.

Pure: candidates come with how near they are to the question by meaning (cosine similarity) and by
words (which of the question's words they hold). Words count by how rare they are among all
candidates (idf); a similarity counts by how far it stands out of all similarities there, because
no threshold on cosines holds for two embedding models. Nothing relevant is a valid outcome.

Robertson and Sparck Jones' idf: https://nlp.stanford.edu/IR-book/html/htmledition/okapi-bm25-a-non-binary-model-1.html
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.lexical import features
from engine.small_talk import is_small_talk

MIN_RELEVANCE: Final = 0.35
"""Of 0 to 1. About: a third of the question's rare words, or a similarity well out of the crowd."""

STANDOUT: Final = (2.0, 5.0)
"""Standard deviations above the mean similarity that count as nothing, and as everything."""

MIN_CROWD: Final = 12
"""With fewer similarities their spread says little; then they are measured on FEW_SIMILARITY."""

FEW_SIMILARITY: Final = (0.35, 0.75)
"""Cosines that count as nothing and as everything where there is no crowd to compare with."""

ENOUGH_FEATURES: Final = 4
LOOK_BACK: Final = 3
"""A question of fewer words leans on those before it, but on no more than so many."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """The similarities of all that could be recalled: how many, their mean and deviation."""

    count: int = 0
    mean: float = 0.0
    deviation: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """`similarity` is None where it is not known. `words` are those of the question it holds."""

    key: str
    tokens: int
    similarity: float | None = None
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Scored:
    candidate: Candidate
    relevance: float


def score(
    candidates: Iterable[Candidate],
    *,
    frequencies: Mapping[str, int],
    total: int,
    crowd: Crowd = Crowd(),
) -> list[Scored]:
    """The candidates with their relevance, 0 to 1, best first.

    `frequencies`: in how many of all `total` texts each word of the question stands (0 for one
    that stands nowhere). A text is as relevant as its stronger side says, and a little more when
    the other side agrees.
    """
    weights = {word: _idf(count, total) for word, count in frequencies.items()}
    scored = [
        Scored(candidate, _both(_coverage(candidate, weights), _nearness(candidate, crowd)))
        for candidate in candidates
    ]
    return sorted(scored, key=lambda one: (-one.relevance, one.candidate.key))


def choose(
    scored: Sequence[Scored], *, limit_tokens: int, least: float = MIN_RELEVANCE
) -> tuple[list[Scored], list[Scored]]:
    """What is taken and what is left out although relevant, both best first.

    Takes while the budget lasts; a large one that does not fit does not keep a smaller one out.
    """
    taken: list[Scored] = []
    left_out: list[Scored] = []
    rest = limit_tokens
    for one in scored:
        if one.relevance < least:
            break
        if one.candidate.tokens <= rest:
            taken.append(one)
            rest -= one.candidate.tokens
        else:
            left_out.append(one)
    return taken, left_out


def question_of(asked: Sequence[str], *, max_chars: int = 2_000) -> str:
    """The text to search by: the user's last message, with those before it while it says little.

    `asked` are the user's messages, oldest first. "And in 2023?" means nothing alone. Empty for
    small talk.
    """
    if not asked or is_small_talk(asked[-1]):
        return ""
    text = ""
    for earlier in asked[: -LOOK_BACK - 1 : -1]:
        text = f"{earlier.strip()[:max_chars]}\n{text}".strip()
        if sum(weight >= 1 for weight in features(text).values()) >= ENOUGH_FEATURES:
            break
    return text[-max_chars:]


def _idf(count: int, total: int) -> float:
    return math.log(1 + (max(total - count, 0) + 0.5) / (count + 0.5))


def _coverage(candidate: Candidate, weights: Mapping[str, float]) -> float:
    """The share of the question's weight that the text holds."""
    whole = sum(weights.values())
    held = sum(weights.get(word, 0.0) for word in candidate.words)
    return held / whole if whole else 0.0


def _nearness(candidate: Candidate, crowd: Crowd) -> float:
    if candidate.similarity is None:
        return 0.0
    if crowd.count < MIN_CROWD:
        return _between(candidate.similarity, *FEW_SIMILARITY)
    if crowd.deviation <= 0:
        return 0.0
    return _between((candidate.similarity - crowd.mean) / crowd.deviation, *STANDOUT)


def _between(value: float, nothing: float, everything: float) -> float:
    return min(max((value - nothing) / (everything - nothing), 0.0), 1.0)


def _both(one: float, other: float) -> float:
    """As a probability that either is right, the weaker side counting a quarter."""
    strong, weak = max(one, other), min(one, other)
    return 1 - (1 - strong) * (1 - weak / 4)
