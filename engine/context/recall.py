"""Decide what a turn searches by, and what of the findings fits into its budget.

Pure. What is relevant to a question is decided by `engine.context.ranking`, for earlier talk, and by
`memory.recall.relevance`.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeVar

from engine.text.lexical import features
from engine.text.question_forms import is_about_speaker
from engine.text.small_talk import is_small_talk

Key = TypeVar("Key", bound=Hashable)

ENOUGH_FEATURES: Final = 4
ENOUGH_ALONE: Final = 2
ENOUGH_OF_SPEAKER: Final = 1
LOOK_BACK: Final = 3
"""A question of fewer than ENOUGH_FEATURES words is read together with up to LOOK_BACK questions before it.

One that points back at nothing ("Why do cats purr?") needs only ENOUGH_ALONE words, and one about the speaker
("Who is my dentist?") ENOUGH_OF_SPEAKER: earlier questions would only drown it. Of 133 unrelated English questions
32 recalled the small talk before them with ENOUGH_ALONE = 3, and 13 recall something with 2 (`bench/quality`, over
REST)."""

_POINTS_BACK = re.compile(
    r"^\W*(?:and|but|or|so|then|also|what about|how about)\b|"
    r"\b(?:it|its|that|this|these|those|they|them|their|he|him|his|she|her|there|one|ones|same|"
    r"other|others|another|former|latter|instead|again)\b|[那这它他她其另呢]|前面|上面|刚才",
    re.IGNORECASE,
)


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
        cost = costs_tokens.get(key)
        if cost is None:
            continue
        if cost <= rest:
            taken.append(key)
            rest -= cost
        else:
            left_out.append(key)
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
