"""Fuse what words found and what vectors found to one ranking: weighted reciprocal rank fusion.

    score(chunk) = sum over retrievers of weight(retriever) / (K + rank of the chunk in it)

(Cormack et al., https://plg.uwaterloo.ca/~gvcormac/cormacksigir09-rrf.pdf). Equal weights let a
weak retriever drag a strong one: an embedder that knows only English ruins Chinese, vectors that
mean nothing ruin everything. So the weights follow how far each retriever can be trusted for this
question, from what can be seen without knowing the answer:

- **Coverage**: how much of the question's rare words the words' first hit holds. Little: the words
  have found nothing, and count for little.
- **Agreement**: how far the vectors lift the words' first hits above all chunks, and the words the
  vectors' first hits. Vectors that mean nothing lift nothing: 0, whatever their similarities. It
  speaks against the vectors only as far as the words found something (coverage).
- **Decisiveness**: how far the words' first hit stands out of the second. A part number or a rare
  name decides alone; then the vectors' ranking adds noise.
- **Prior**: what a survey of the library says about its vectors for this script
  (`libraries.retrieval.survey`), and whether they are lexical themselves: then they know less than
  the words do, and nothing else.

K is small (2, where web search takes 60), since with a flat K even a slight weight reorders a sharp
list; retrievers are cut at a hundred hits. What this reaches is in docs/retrieval.md.

The module is pure. It does not decide what is relevant enough: callers compare `relevance`, which
`engine.relevance.measures` measures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from engine.relevance.fusion import reciprocal_ranks
from engine.relevance.measures import PASSAGES, ramp, standout

K: Final = 2
FIRST_HITS: Final = 10
"""How many hits of each retriever are compared with the other's, to see how far they agree."""

COVERAGE: Final = (0.05, 0.2)
"""Up to the first share of the question's rare words nothing counts as found, from the second on all does."""
FULL_AGREEMENT: Final = 0.8
"""Two good retrievers never agree wholly: 0.8 to 0.9 where both know the language, 0 where one does
not."""
UNDECIDED: Final = 0.2
"""A lead of the first hit over the second that is no larger decides nothing."""
MEANING_WEIGHT: Final = 1.5
"""Weight of vectors that are trusted wholly, where the words' is 1: they find what the words find
and more, which words cannot do."""
LEXICAL_WEIGHT: Final = 0.2
"""Weight of an embedder of hashed words beside words that are counted and weighed exactly."""
DECIDED_POWER: Final = 3
"""The vectors' weight is multiplied by what the words left undecided, to this power."""
CHANCE_LIFT, FULL_LIFT = 0.1, 0.7
"""Lifts in a survey: 0 for random vectors, 0.4 for an English embedder on Chinese, 0.7 and more for
those that know the script."""


class TextHit(NamedTuple):
    """A chunk that words found. `coverage` is the share of the question's words it holds.

    Words count by rarity; the share is from 0 to 1.
    """

    id: UUID
    score: float
    coverage: float


@dataclass(frozen=True, slots=True)
class KeywordResult:
    """The chunks that words found, best first. No other chunk scores more than `floor`.

    `weights` are those of the question's words, by each form that a chunk may hold.
    """

    hits: Sequence[TextHit] = ()
    floor: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VectorResult:
    """The chunks that the vectors of one model found: (chunk, cosine), best first.

    `mean` and `deviation` are of all `count` chunks' similarities, measured or estimated. `others`
    are the similarities of the words' first hits, where they belong to this model. `lift` is a
    survey's, None if there was none. `is_lexical` marks an embedder that knows no meaning.
    """

    hits: Sequence[tuple[UUID, float]] = ()
    count: int = 0
    mean: float = 0.0
    deviation: float = 0.0
    others: Mapping[UUID, float] | None = None
    lift: float | None = None
    is_lexical: bool = False

    @property
    def prior(self) -> float:
        known = 1.0 if self.lift is None else ramp(self.lift, CHANCE_LIFT, FULL_LIFT)
        return known * (LEXICAL_WEIGHT if self.is_lexical else MEANING_WEIGHT)


class RankedChunk(NamedTuple):
    """A chunk in the fused ranking. A `score` of 1 means first in every retriever that counts.

    `relevance` is from 0 to 1, by the better of the retrievers. So is `strength`, which says how near
    it comes to the best that was found: 1 for that one. `is_near` says that it has that strength by its
    meaning, not by its words.
    """

    id: UUID
    score: float
    relevance: float
    strength: float
    text_rank: int | None
    vector_rank: int | None
    is_near: bool = False


@dataclass(frozen=True, slots=True)
class Weights:
    """How far each retriever counts, from 0 to 1 or MEANING_WEIGHT.

    `vectors` are in the order of the vector results.
    """

    text: float
    vectors: tuple[float, ...]


def fuse(text: KeywordResult, vectors: Sequence[VectorResult]) -> list[RankedChunk]:
    """Return all hits, best first; equal scores in the order of the words, then of ids."""
    weights = weigh(text, vectors)
    numbers: dict[UUID, int] = {}  # of the chunks: a UUID is hashed in Python
    by_text = [numbers.setdefault(hit.id, len(numbers)) for hit in text.hits]
    by_vectors = [[numbers.setdefault(pk, len(numbers)) for pk, _ in each.hits] for each in vectors]
    scores = reciprocal_ranks(
        [(by_text, weights.text), *zip(by_vectors, weights.vectors, strict=True)], k=K
    )
    relevances = dict(zip(by_text, [hit.coverage for hit in text.hits], strict=True))
    vector_ranks: dict[int, int] = {}
    for retriever, places, weight in zip(vectors, by_vectors, weights.vectors, strict=True):
        trust = min(1.0, weight)
        for rank, (number, (_, similarity)) in enumerate(
            zip(places, retriever.hits, strict=True), 1
        ):
            vector_ranks[number] = rank
            stands_out = standout(similarity, retriever, PASSAGES) * trust
            relevances[number] = max(relevances.get(number, 0.0), stands_out)
    text_ranks = {number: rank for rank, number in enumerate(by_text, 1)}
    strengths = _strengths(text, vectors, weights, by_text, by_vectors)
    best = (weights.text + max(weights.vectors, default=0.0)) / (K + 1)
    ranked = [
        RankedChunk(
            pk,
            scores[number] / best,
            min(1.0, relevances[number]),
            strengths[number][0],
            text_ranks.get(number),
            vector_ranks.get(number),
            strengths[number][1],
        )
        for pk, number in numbers.items()
    ]
    return sorted(ranked, key=lambda each: (-each.score, each.text_rank or len(scores), each.id))


def _strengths(
    text: KeywordResult,
    vectors: Sequence[VectorResult],
    weights: Weights,
    by_text: Sequence[int],
    by_vectors: Sequence[Sequence[int]],
) -> dict[int, tuple[float, bool]]:
    """Return how near each chunk, by its number, comes to the best one, by the retriever that says the most
    for it, and whether that is one of meaning."""
    found: dict[int, tuple[float, bool]] = {}
    first = text.hits[0].score or 1.0 if text.hits else 1.0
    for number, hit in zip(by_text, text.hits, strict=True):
        found[number] = weights.text * hit.score / first, False
    for retriever, places, weight in zip(vectors, by_vectors, weights.vectors, strict=True):
        most = retriever.hits[0][1] - retriever.mean if retriever.hits else 0.0
        trust = min(1.0, weight)
        for number, (_, similarity) in zip(places, retriever.hits, strict=True):
            near = (similarity - retriever.mean) / most if most > 0 else 1.0
            strength = trust * max(0.0, near)
            if number not in found or strength > found[number][0]:
                found[number] = strength, True
    best = max((strength for strength, _ in found.values()), default=0.0) or 1.0
    return {number: (strength / best, is_near) for number, (strength, is_near) in found.items()}


def weigh(text: KeywordResult, vectors: Sequence[VectorResult]) -> Weights:
    """Weigh the retrievers. Never all zero: where words found nothing, vectors count a little."""
    if not text.hits:
        return Weights(0.0, tuple(max(retriever.prior, _LEAST) for retriever in vectors))
    found = ramp(text.hits[0].coverage, *COVERAGE)
    decided = found * ramp(decisiveness(text), UNDECIDED, 1.0)
    by_retriever = tuple(
        retriever.prior
        * (1 - found * (1 - agreement(text, retriever)))
        * (1 - decided) ** DECIDED_POWER
        for retriever in vectors
    )
    return Weights(max(found, _LEAST), by_retriever)


_LEAST: Final = 1e-6


def decisiveness(text: KeywordResult) -> float:
    """Return 0 if the first two hits are equally good, up to 1 if nothing comes near the first."""
    first, *rest = (hit.score for hit in text.hits[:2])
    return 1.0 - (rest[0] / first if rest else 0.0)


def agreement(text: KeywordResult, retriever: VectorResult) -> float:
    """Return how far both agree: 0 no more than by chance, 1 as much as two good retrievers do.

    Returns 1 as well if there is nothing to compare.
    """
    others = retriever.others or {}
    common = [hit for hit in text.hits[:FIRST_HITS] if hit.id in others]
    if not common or not retriever.hits:
        return 1.0
    by_vectors = _lift(
        [others[hit.id] for hit in common],
        [similarity for _, similarity in retriever.hits[: len(common)]],
        retriever.mean,
    )
    scores = {hit.id: hit.score for hit in text.hits}
    by_words = _lift(
        [scores.get(pk, text.floor) for pk, _ in retriever.hits[:FIRST_HITS]],
        [hit.score for hit in text.hits[:FIRST_HITS]],
        text.floor,
    )
    return ramp((by_vectors + by_words) / 2, 0.0, FULL_AGREEMENT)


def _lift(values: Sequence[float], best: Sequence[float], background: float) -> float:
    """Return how far above the background the values lie, where the best possible is 1."""
    most = sum(best) / len(best) - background
    return (sum(values) / len(values) - background) / most if most > 0 else 0.0
