"""Rank the messages of a conversation by a question, and tell whether any has to do with it.

A question's word counts for the message that has it, and half, a quarter, an eighth for those one, two
and three messages away: people answer each other, and only one of them says the word. Nearby occurrences
add up to at most one full one. What is near in meaning is added in standard deviations. Pure; numpy is
imported on first use. Which blocks are looked at, and how their words are stored, is
`chats.context.recall`'s.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from engine.context.pieces import Piece
from engine.relevance.bm25 import COMMON_SHARE, TEXTBOOK
from engine.relevance.fusion import Spread
from engine.relevance.gates import Evidence, Gate
from engine.relevance.measures import MIN_CROWD, idf, ramp
from engine.text.lexical import is_spaceless

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

Key = TypeVar("Key", bound=Hashable)

NEARNESS: Final = (1.0, 0.5, 0.25, 0.125)
"""What a word counts in the message that has it, and one, two, three messages away."""

TOGETHER: Final = (1.0, 0.8, 0.5)
"""How far words that are one or two messages apart stand together, for the gate: so much of each counts."""

TOGETHER_SHARE: Final = 0.6
"""What counts that words stand together, and not only that they were said somewhere (the rest): fitted
by logistic regression."""

NAME_WEIGHT: Final = 2.0
"""What a name weighs in what is asked, a word with a capital in the middle of a question, where another has
1. Whom a question is about tells most: with 1 a tenth of unrelated questions let 83% of the others in, with
2 they let 90% in (`bench/quality`, and pairs of Chinese paragraphs). In German that is each noun, which
does no harm."""

ABSENT: Final = 0.7
"""What a word weighs that nobody said, where one that was said once has 1."""

ABSENT_PAIR: Final = 0.3
"""The same for two neighbouring characters of a script without spaces: every second pair is only the seam
between two words."""

MEANING_WEIGHT: Final = 0.5
"""What a deviation of the vectors counts, where one of the words has 1."""

RELATED: Final = Gate(coverage=0.48)
"""What speaks for the best message has to reach this."""

STANDS_OUT: Final = (4.0, 7.0)
"""Deviations of the best similarity that say nothing, and as much as they can: the best of 600 that mean
nothing lies 3.2 out."""

MEANING_SHARE: Final = 0.06
"""What a similarity that stands out adds to the coverage. Little: of a weak embedder one always does. With
0.15 and the stand-in of `bench/quality` 22% of unrelated questions recalled something, with 0.06 9%."""

LEAST_SHARE: Final = 0.1
"""What has less of the best score is not shown."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for: its `words`; `weak` ones among them, by which it asks, and `names`; the
    words of `dates`, the most exact first; and the `kinds` of answer it wants (a date, a number)."""

    words: Sequence[str]
    weak: Collection[str] = ()
    names: Collection[str] = ()
    dates: Sequence[str] = ()
    kinds: Sequence[str] = ()
    forms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The forms that texts may hold a word in; without any it is that word."""

    @property
    def all_words(self) -> list[str]:
        return list(dict.fromkeys([*self.words, *self.dates, *self.kinds]))

    def forms_of(self, word: str) -> Sequence[str]:
        return self.forms.get(word) or (word,)


@dataclass(frozen=True, slots=True)
class FoundBlock(Generic[Key]):
    """A block as the search found it, with the places of the question's words among its pieces.

    `follows` tells that it begins where the block before it in the list ends.
    """

    key: Key
    pieces: Sequence[Piece]
    places: Mapping[str, Sequence[int]]
    follows: bool = False
    similarities: Sequence[float] = ()
    """Of its pieces to the question by meaning, if they have vectors."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """How many pieces there are in all, and how many of them have each of the question's words."""

    total: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Ranking(Generic[Key]):
    """Pieces as (block, place in it), best first, with scores; and what speaks for the best."""

    scores: Mapping[tuple[Key, int], float] = field(default_factory=dict)
    evidence: Evidence = field(default_factory=Evidence)


def rank_pieces(
    blocks: Sequence[FoundBlock[Key]], asked: Asked, conversation: Conversation
) -> Ranking[Key]:
    """Rank the pieces of these blocks, given in the order of the conversation."""
    import numpy as np

    keys, slots, size = _lay_out(blocks)
    if not keys:
        return Ranking()
    at = np.array(slots)
    lengths = np.array([piece.words for block in blocks for piece in block.pieces], dtype=float)
    damping = _damping(lengths)
    weights = _weights(asked, conversation)
    score = np.zeros(size)
    held = np.zeros(size)
    offsets = dict(zip((block.key for block in blocks), _offsets(blocks), strict=True))
    for word, weight in weights.items():
        has = np.zeros(size)
        full = np.zeros(size)
        for block in blocks:
            for place in block.places.get(word, ()):
                number = offsets[block.key] + place
                has[at[number]] = 1.0
                full[at[number]] = damping[number]
        score += weight * _spread_out(full)
        held += _asked_weight(word, asked, conversation) * _reach(has)
    fused = _fuse(score[at], blocks, conversation.total)
    order = np.lexsort((np.arange(len(keys)), -fused))
    evidence = _evidence(held[at], blocks, asked, conversation)
    ranked = {keys[n]: float(fused[n]) for n in order if fused[n] > 0}
    return Ranking(ranked, evidence)


def _lay_out(blocks: Sequence[FoundBlock[Key]]) -> tuple[list[tuple[Key, int]], list[int], int]:
    """Return each piece's key and slot, and how many slots there are.

    Pieces between which something is left out are too far apart to be neighbours.
    """
    reach = len(NEARNESS)
    keys: list[tuple[Key, int]] = []
    slots: list[int] = []
    slot = reach
    for block in blocks:
        slot += 0 if block.follows else reach
        for place in range(len(block.pieces)):
            keys.append((block.key, place))
            slots.append(slot)
            slot += 1
    return keys, slots, slot + reach


def _offsets(blocks: Sequence[FoundBlock[Key]]) -> list[int]:
    offsets, offset = [], 0
    for block in blocks:
        offsets.append(offset)
        offset += len(block.pieces)
    return offsets


def _damping(lengths: "Numbers") -> "Numbers":
    """Return what one occurrence is worth in each piece, at most 1: less in a long one."""
    k1, b = TEXTBOOK.k1, TEXTBOOK.b
    worth: Numbers = 1 / (1 + k1 * (1 - b + b * lengths / lengths.mean()))
    return worth


def _spread_out(values: "Numbers") -> "Numbers":
    """Let each value count for its neighbours: as probabilities add up, to at most 1."""
    rest = 1 - values * NEARNESS[0]
    for distance, share in enumerate(NEARNESS[1:], 1):
        near = 1 - values * share
        rest[distance:] *= near[:-distance]
        rest[:-distance] *= near[distance:]
    spread: Numbers = 1 - rest
    return spread


def _reach(has: "Numbers") -> "Numbers":
    """Return how far each piece stands together with one that has a word."""
    import numpy as np

    reached = has * TOGETHER[0]
    for distance, share in enumerate(TOGETHER[1:], 1):
        reached[distance:] = np.maximum(reached[distance:], has[:-distance] * share)
        reached[:-distance] = np.maximum(reached[:-distance], has[distance:] * share)
    return reached


def _weights(asked: Asked, conversation: Conversation) -> dict[str, float]:
    """Return what each word that somebody said weighs in the ranking."""
    weak = {*asked.weak, *asked.kinds}
    return {
        word: idf(count, conversation.total) * (COMMON_SHARE if word in weak else 1.0)
        for word in asked.all_words
        if (count := conversation.counts.get(word, 0))
    }


def _asked_weight(word: str, asked: Asked, conversation: Conversation) -> float:
    """Return what a word weighs in what is asked: its rarity, less if nobody said it."""
    if word in asked.kinds or (word in asked.dates and word != asked.dates[0]):
        return 0.0
    share = COMMON_SHARE if word in asked.weak else 1.0
    share *= NAME_WEIGHT if word in asked.names else 1.0
    count = conversation.counts.get(word, 0)
    if count:
        return share * idf(count, conversation.total)
    return share * idf(1, conversation.total) * (ABSENT_PAIR if is_spaceless(word) else ABSENT)


def _fuse(score: "Numbers", blocks: Sequence[FoundBlock[Any]], total: int) -> "Numbers":
    """Add what stands out by meaning to what stands out by words, if there are vectors."""
    near = _standing_out(blocks)
    if near is None:
        return score
    words = Spread.of(score.tolist(), zeros=max(total - len(score), 0))
    deviation = words.deviation or 1.0
    fused: Numbers = score / deviation + MEANING_WEIGHT * near
    return fused


def _standing_out(blocks: Sequence[FoundBlock[Any]]) -> "Numbers | None":
    """Return each piece's similarity in deviations above the mean; 0 where there is none, None where there
    are hardly any."""
    import numpy as np

    near = np.array(
        [value for block in blocks for value in block.similarities or [np.nan] * len(block.pieces)]
    )
    known = near[~np.isnan(near)]
    if len(known) < MIN_CROWD or not known.std():
        return None
    return np.nan_to_num((near - known.mean()) / known.std())


def _evidence(
    held: "Numbers",
    blocks: Sequence[FoundBlock[Any]],
    asked: Asked,
    conversation: Conversation,
) -> Evidence:
    weights = {word: _asked_weight(word, asked, conversation) for word in asked.all_words}
    whole = sum(weights.values())
    near = _standing_out(blocks)
    margin = 0.0 if near is None else float(near.max())
    if not whole:
        return Evidence(margin=margin)
    known = sum(weight for word, weight in weights.items() if conversation.counts.get(word))
    together = TOGETHER_SHARE * float(held.max()) + (1 - TOGETHER_SHARE) * known
    return Evidence(coverage=min(together / whole, 1.0), margin=margin)


def is_related(evidence: Evidence) -> bool:
    """Whether the best has enough to do with the question for anything to be shown."""
    more = MEANING_SHARE * ramp(evidence.margin, *STANDS_OUT)
    return RELATED.lets_in(replace(evidence, coverage=evidence.coverage + more))


def worth_showing(ranking: Ranking[Key]) -> dict[tuple[Key, int], float]:
    """Return the pieces to show, best first, each with its share of the best score, 0 to 1."""
    best = max(ranking.scores.values(), default=0.0)
    shares = {key: score / best for key, score in ranking.scores.items()}
    return {key: share for key, share in shares.items() if share >= LEAST_SHARE}
