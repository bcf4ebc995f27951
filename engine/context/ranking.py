"""Rank the messages of a conversation by a question, and tell whether any has to do with it.

A question's word counts for the message that has it, and half, a quarter, an eighth for those one, two
and three messages away: people answer each other, and only one of them says the word. Nearby occurrences
add up to at most one full one. A name that one side is called by counts for what
they said. What is near in meaning is added in standard deviations. Pure; numpy is imported on first use.
Which blocks are looked at, and how their words are stored, is `chats.context.block_search`'s. What each number
was chosen by is measured in docs/context.md.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from engine.relevance.bm25 import COMMON_SHARE
from engine.relevance.fusion import Spread
from engine.relevance.gates import Evidence, Gate, QuestionWords
from engine.relevance.measures import MIN_CROWD, idf, ramp
from engine.relevance.nearness import damping, spread_out

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Places = NDArray[np.int64]

Key = TypeVar("Key", bound=Hashable)

NEARNESS: Final = (1.0, 0.5, 0.25, 0.125)
"""What a word counts in the message that has it, and one, two, three messages away."""

TOGETHER: Final = (1.0, 0.8, 0.5)
"""How far words that are one or two messages apart stand together, for the gate: so much of each counts."""

TOGETHER_SHARE: Final = 0.6
"""What counts that words stand together, and not only that they were said somewhere (the rest): a long chat has
something of everything."""

NAME_WEIGHT: Final = 2.0
"""What a name weighs, a word with a capital in the middle of a question, where another has 1: whom a question is about
tells most. In German that is each noun, which does no harm."""

ABSENT: Final = 0.7
"""What a word weighs that nobody said, where one that was said once has 1."""

ABSENT_PAIR: Final = 0.6
"""The same for two neighbouring characters of a script without spaces: about every second pair is only the seam
between two words."""

DOUBT: Final = 1.0
"""How many words are added to every question, which nobody said: of a short one a single common word holds half."""

CALLED_OFTEN: Final = 2
CALLED_SHARE: Final = 0.5
ONE_SIDED: Final = 0.9
"""One speaker goes by a name if the other calls them so at least twice, in half of all messages that have the name,
and they hardly use it themselves. The name then leads to what they said, and not to those who say "Thanks, Ann!"."""

OTHERS_SHARE: Final = 0.6
"""What messages of others count in a question with a speaker's name."""

TELLING_WORDS: Final = 16
LITTLE_SHARE: Final = 0.8
"""A message of fewer words tells the less the shorter it is: of 80% of its score only the share that it has of so many words
is left. "Ha, both I suspect" stands beside what is asked for, and never is it. Nor does it gain by being short: BM25 counts it
as one of so many words."""

GENERAL_SHARE: Final = 0.8
"""How far words speak for a question that has the form of one about the world and names nobody who is known."""

MEANING_WEIGHT: Final = 1.0
"""What a deviation of the vectors counts, where one of the words has 1."""

RELATED: Final = Gate(coverage=0.35)
"""What speaks for the best message has to reach this."""

STANDS_OUT: Final = (4.0, 7.0)
"""Deviations of the best similarity that say nothing, and as much as they can: the best of 600 that mean
nothing lies 3.2 out."""

MEANING_SHARE: Final = 0.015
"""What a similarity that stands out adds to the coverage. Little: of a weak embedder one always does."""

MOST_RANKED: Final = 500
"""Pieces that are told apart; fewer fill any budget."""

LEAST_SHARE: Final = 0.08
"""What has less of the best score is not shown: it is three messages away from a word that others have, too."""


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """What a question asks for: its `words`; `weak` ones among them, by which it asks, and `names`; the
    words of `dates`, the most exact first; and the `kinds` of answer it wants (a date, a number)."""

    words: Sequence[str]
    weak: Collection[str] = ()
    names: Collection[str] = ()
    dates: Sequence[str] = ()
    kinds: Sequence[str] = ()
    is_general: bool = False
    """Whether it has the form of a question about the world (`engine.text.question_forms`)."""
    forms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The forms that texts may hold a word in; without any it is that word."""

    @property
    def all_words(self) -> list[str]:
        return list(dict.fromkeys([*self.words, *self.dates, *self.kinds]))

    def forms_of(self, word: str) -> Sequence[str]:
        return self.forms.get(word) or (word,)


class FoundBlock(NamedTuple, Generic[Key]):
    """A block as the search found it: how many words each piece has, and the places of the question's
    words among them.

    `follows` tells that it begins where the block before it in the list ends.
    """

    key: Key
    lengths: Sequence[int]
    places: Mapping[str, Sequence[int]]
    follows: bool = False
    similarities: Sequence[float] = ()
    """Of its pieces to the question by meaning, if they have vectors."""
    said_by: Mapping[str, Sequence[int]] = {}
    """The places of what each speaker said; only needed if the question has a name."""
    called: Mapping[str, Sequence[int]] = {}
    """The places where somebody is called by a name of the question: "Hi Ann!"."""


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
    blocks: Sequence[FoundBlock[Key]],
    asked: QuestionTerms,
    conversation: Conversation,
    *,
    is_gated: bool = False,
) -> Ranking[Key]:
    """Rank the pieces of these blocks, given in the order of the conversation.

    If it `is_gated`, there are no scores where `is_related` says no of the evidence: it needs half of the work.
    """
    import numpy as np

    if not any(block.lengths for block in blocks):
        return Ranking()
    pieces = _Pieces(blocks)
    question = _question_words(asked, conversation)
    weights = _weights(asked, conversation)
    having = {word: pieces.numbers([b.places.get(word, ()) for b in blocks]) for word in weights}
    asked_for = [question.weight(word) if word in question.counts else 0.0 for word in weights]
    held = _add_up(_reach(pieces.mark(having, 1.0)), asked_for)[pieces.slots]
    near = _standing_out(blocks)
    speakers = _speakers_called(blocks, asked)
    evidence = replace(
        _evidence(held, near, question, _trust(asked, conversation)), names_speaker=bool(speakers)
    )
    if is_gated and not is_related(evidence):
        return Ranking(evidence=evidence)
    for word in weights.keys() & speakers.keys():
        having[word] = pieces.said_by(speakers[word])
        weights[word] = idf(len(having[word]), len(pieces.lengths))
    counted = np.maximum(pieces.lengths, TELLING_WORDS)
    full = pieces.mark(having, damping(counted, float(counted.mean())))
    score = _add_up(spread_out(full, NEARNESS), weights.values())[pieces.slots]
    fused = _fuse(score, near, conversation.total)
    shares = _telling(pieces.lengths) * _said_by_named(pieces, {*speakers.values()})
    # A share of a score below 0 would be a better one.
    fused = np.where(fused > 0, fused * shares, fused)
    return Ranking(_best_first(fused, pieces), evidence)


class _Pieces(Generic[Key]):
    """The pieces of all blocks in a row, numbered from 0.

    Each has a slot. Where the conversation between two pieces is missing, their slots are too far apart
    for neighbours.
    """

    def __init__(self, blocks: Sequence[FoundBlock[Key]]) -> None:
        import numpy as np

        self.blocks = blocks
        sizes = [len(block.lengths) for block in blocks]
        reach = len(NEARNESS)
        gaps = np.cumsum([0 if block.follows else reach for block in blocks])
        self.slots: Places = np.arange(sum(sizes)) + np.repeat(gaps, sizes) + reach
        self._slot_count = int(self.slots[-1]) + reach + 1
        self._offsets: Places = np.cumsum([0, *sizes[:-1]])

    @cached_property
    def lengths(self) -> "Numbers":
        """The words of each piece."""
        import numpy as np

        return np.array([*chain.from_iterable(block.lengths for block in self.blocks)], float)

    def numbers(self, places: Sequence[Sequence[int]]) -> "Places":
        """Return the numbers of the pieces that stand at these places of each block."""
        import numpy as np

        flat = np.array([*chain.from_iterable(places)], int)
        numbers: Places = flat + np.repeat(self._offsets, [len(some) for some in places])
        return numbers

    def said_by(self, speaker: str) -> "Places":
        """Return the numbers of what this speaker said."""
        return self.numbers([block.said_by.get(speaker, ()) for block in self.blocks])

    def mark(self, having: Mapping[str, "Places"], worth: "Numbers | float") -> "Numbers":
        """Return a row for each word: what it is worth in the slots of the pieces that have it, and 0 in others."""
        import numpy as np

        marked = np.zeros((len(having), self._slot_count))
        for row, numbers in enumerate(having.values()):
            marked[row, self.slots[numbers]] = worth if isinstance(worth, float) else worth[numbers]
        return marked

    def keys(self, numbers: "Places") -> list[tuple[Key, int]]:
        """Return (block, place in it) of these pieces."""
        import numpy as np

        of_block = np.searchsorted(self._offsets, numbers, side="right") - 1
        places = (numbers - self._offsets[of_block]).tolist()
        return [
            (self.blocks[number].key, place)
            for number, place in zip(of_block.tolist(), places, strict=True)
        ]


def _best_first(scores: "Numbers", pieces: _Pieces[Key]) -> dict[tuple[Key, int], float]:
    """Return the pieces that have a score, best first, with it."""
    import numpy as np

    best = np.argsort(-scores, kind="stable")[:MOST_RANKED]
    best = best[scores[best] > 0]
    return dict(zip(pieces.keys(best), scores[best].tolist(), strict=True))


def _telling(lengths: "Numbers") -> "Numbers":
    """Return what is left of each piece's score for its length."""
    import numpy as np

    told: Numbers = np.minimum(lengths / TELLING_WORDS, 1.0)
    return 1 - LITTLE_SHARE + LITTLE_SHARE * told


def _said_by_named(pieces: _Pieces[Any], named: Collection[str]) -> "Numbers | float":
    """Return 1 for each piece that a speaker named in the question said, less for others; 1 if there is none."""
    import numpy as np

    if not named:
        return 1.0
    shares = np.full(len(pieces.lengths), OTHERS_SHARE)
    for speaker in named:
        shares[pieces.said_by(speaker)] = 1.0
    return shares


def _speakers_called(blocks: Sequence[FoundBlock[Any]], asked: QuestionTerms) -> dict[str, str]:
    """Return the speakers that go by names of the question: who is called so by the other, by a name that is
    hardly used else."""
    found = {}
    for name in asked.names:
        calls: Counter[str] = Counter()
        for block in blocks:
            called = {*block.called.get(name, ())}
            for speaker, places in block.said_by.items():
                calls[speaker] += len(called.intersection(places))
        said = sum(len(block.places.get(name, ())) for block in blocks)
        if calls.total() < CALLED_OFTEN or calls.total() < CALLED_SHARE * said:
            continue
        (caller, often), *_ = calls.most_common()
        others = {*chain(*(block.said_by for block in blocks))} - {caller}
        if often >= ONE_SIDED * calls.total() and len(others) == 1:
            found[name] = others.pop()
    return found


def _reach(has: "Numbers") -> "Numbers":
    """Return how far each piece stands together with one that has a row's word."""
    import numpy as np

    # The nearest one counts: shares of several are not added, unlike in the ranking.
    reached = has * TOGETHER[0]
    for distance, share in enumerate(TOGETHER[1:], 1):
        shared = has * share
        reached[:, distance:] = np.maximum(reached[:, distance:], shared[:, :-distance])
        reached[:, :-distance] = np.maximum(reached[:, :-distance], shared[:, distance:])
    return reached


def _add_up(rows: "Numbers", weights: Iterable[float]) -> "Numbers":
    """Return the sum of the rows, each by its weight."""
    import numpy as np

    total = np.zeros(rows.shape[1])
    for row, weight in zip(rows, weights, strict=True):
        total += weight * row
    return total


def _weights(asked: QuestionTerms, conversation: Conversation) -> dict[str, float]:
    """Return what each word that somebody said weighs in the ranking."""
    weak = {*asked.weak, *asked.kinds}
    return {
        word: idf(count, conversation.total) * (COMMON_SHARE if word in weak else 1.0)
        for word in asked.all_words
        if (count := conversation.counts.get(word, 0))
    }


def _question_words(asked: QuestionTerms, conversation: Conversation) -> QuestionWords:
    """Return what the gate reckons with: of a date its most exact word, and no kinds of answers."""
    words = [*asked.words, *asked.dates[:1]]
    return QuestionWords(
        counts={word: conversation.counts.get(word, 0) for word in words},
        total=conversation.total,
        absent=ABSENT,
        absent_pair=ABSENT_PAIR,
        doubt=DOUBT,
        emphasis={
            **dict.fromkeys(asked.weak, COMMON_SHARE),
            **dict.fromkeys(asked.names, NAME_WEIGHT),
        },
    )


def _fuse(score: "Numbers", near: "Numbers | None", total: int) -> "Numbers":
    """Add what stands out by meaning to what stands out by words, if there are vectors."""
    if near is None:
        return score
    # Pieces that were not looked at count as having none of the words.
    words = Spread.of(score.tolist(), zeros=max(total - len(score), 0))
    fused: Numbers = score / (words.deviation or 1.0) + MEANING_WEIGHT * near
    return fused


def _standing_out(blocks: Sequence[FoundBlock[Any]]) -> "Numbers | None":
    """Return each piece's similarity in deviations above the mean; 0 where there is none, None where there
    are hardly any."""
    import numpy as np

    if not any(block.similarities for block in blocks):
        return None
    near = np.concatenate([block.similarities or [np.nan] * len(block.lengths) for block in blocks])
    known = near[~np.isnan(near)]
    if len(known) < MIN_CROWD or not known.std():
        return None
    standing_out: Numbers = np.nan_to_num((near - known.mean()) / known.std())
    return standing_out


def _trust(asked: QuestionTerms, conversation: Conversation) -> float:
    """Return how far shared words speak for a question: less for one about the world, unless it names somebody
    who was named here."""
    is_named = any(conversation.counts.get(name) for name in asked.names)
    return GENERAL_SHARE if asked.is_general and not is_named else 1.0


def _evidence(
    held: "Numbers", near: "Numbers | None", question: QuestionWords, trust: float
) -> Evidence:
    together = question.share_of(float(held.max()))
    coverage = TOGETHER_SHARE * together + (1 - TOGETHER_SHARE) * question.share_known()
    return Evidence(
        coverage=trust * coverage,
        margin=0.0 if near is None else float(near.max()),
    )


def is_related(evidence: Evidence) -> bool:
    """Whether the best match has enough to do with the question for anything to be shown.

    A question that names one of the chat's speakers always has.
    """
    if evidence.names_speaker:
        return True
    more = MEANING_SHARE * ramp(evidence.margin, *STANDS_OUT)
    return RELATED.lets_in(replace(evidence, coverage=evidence.coverage + more))


def worth_showing(ranking: Ranking[Key]) -> dict[tuple[Key, int], float]:
    """Return the pieces to show, best first, each with its share of the best score, 0 to 1."""
    best = max(ranking.scores.values(), default=0.0)
    scores = ranking.scores.items()
    return {key: share for key, score in scores if (share := score / best) >= LEAST_SHARE}
