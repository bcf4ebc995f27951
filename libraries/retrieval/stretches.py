"""Choose what of the chunks found is shown: the sentences that matter to the question.

Ranking wants a chunk's worth of words; a reader wants the sentences that answer. So the sentences of the
best chunks are ranked again, as the messages of a chat are: a word counts for the sentence that has it, and
less and less for those around. Sentences that score nearly as well as the best one are shown. Chunks that
have none of these show one sentence each while there is space, but not to a model. Where only vectors speak
for a chunk, no word tells where in it the answer is: it is shown whole, or less of it the weaker it is.

Sentences are never cut, nor are code, tables and lists up to PIECE_CHARS; what introduces them (a heading, a
line that ends in a colon) stays with them. docs/retrieval.md says what this does to recall and precision.
This module is pure.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final, NamedTuple

from amber.lib.search.languages import language_of
from amber.lib.search.stems import stems_among
from amber.lib.search.words import stored_words
from engine.relevance.nearness import damping, spread_out
from libraries.chunking.text_blocks import BlockKind
from libraries.chunking.text_pieces import Boundary, Piece, pieces_of

NEARNESS: Final = tuple((2 / 3) ** distance for distance in range(7))
"""What a word counts in the sentence that has it, and up to six sentences away: as far as a chunk reaches.

Recall and precision of the text shown (mean of six sets) above those of one stretch of each of the five best
chunks, by the factor from one sentence to the next: 0.65: 1.1 points, 13%; 0.7: 1.8 points, 8%; 0.75: 2.2
points, 1%."""

CHUNK_SHARE: Final = 0.5
"""How much of a sentence's score depends on its chunk: by the square of the chunk's strength. Compared in the
same way, 0.7 gives 0.5 points and 16%, the third power 0.8 points and 13%."""

NEAR_SHARE: Final = 0.4
"""Sentences with this share of the best one's score are shown.

Recall / precision of these alone, in at most twelve passages: Python's reference 77.3 / 8.0, Amber's documents
69.0 / 10.8, Cranfield 72.7 / 8.2, CMRC 92.0 / 18.6. With 0.5, and 0.4 only around those, recall is 1 to 5 points
lower and precision 3 to 20% higher; with 0.35 recall is 1 to 2 points higher, precision 8 to 17% lower."""

GAP: Final = 1
"""A gap of so many sentences between two that are shown is filled: the mark for an omission would disturb more
than it saves."""

PIECE_CHARS: Final = 600
"""Sentences, tables, lists and blocks of code up to this length stay whole."""

POWER: Final = 1.5
"""Of a chunk that vectors found a share is shown: this power of its strength, where the best has 1."""

_GOES_ON: Final = ("；", "…", ":", "：")
"""How a line ends that only introduces what follows."""


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """The stretch `start` to `end` of a run's text; its `rank` among all chunks, from 0, and its strength.

    `is_near` says that it is found for its meaning rather than for its words.
    """

    start: int
    end: int
    rank: int
    strength: float
    is_near: bool = False


@dataclass(frozen=True, slots=True)
class FoundRun:
    """Chunks that follow one another in a document, with their text."""

    text: str
    chunks: Sequence[FoundChunk]


class Stretch(NamedTuple):
    """A stretch of the text of the run with this number. `rank` is that of its best chunk.

    `is_filler` says that it is not near to the best: it is there because there was space.
    """

    run: int
    start: int
    end: int
    rank: int
    is_filler: bool = False


@dataclass(frozen=True, slots=True)
class _Sentences:
    """The sentences, rows or lines of a run: places, scores, and the number of each one's best chunk."""

    spans: Sequence[tuple[int, int]]
    scores: Sequence[float]
    chunks: Sequence[FoundChunk]


def choose_stretches(
    runs: Sequence[FoundRun], weights: Mapping[str, float], *, count: int
) -> list[Stretch]:
    """Return at most `count` stretches in the order of their chunks' ranks, one of the best chunk among them.

    `weights` are of stems, in all forms that texts hold.
    """
    ranked = _rank_sentences(runs, weights)
    best = max((score for run in ranked for score in run.scores), default=0.0)
    found = [each for number, run in enumerate(ranked) for each in _clusters(number, run, best)]
    rest = [
        (part, chunk)
        for number, run in enumerate(runs)
        for chunk in run.chunks
        if not any(_holds(stretch, number, chunk) for stretch, _ in found)
        if (part := _part(number, ranked[number], chunk))
    ]
    rest.sort(key=lambda each: each[1].rank)
    found += [(part, chunk.strength**2) for part, chunk in rest if chunk.is_near or not chunk.rank]
    found.sort(key=lambda each: (each[0].rank > 0, -each[1]))
    chosen = {
        stretch: stretch._replace(is_filler=share < NEAR_SHARE and stretch.rank > 0)
        for stretch, share in found[:count]
    }
    more = [part for part, _ in rest if part not in chosen][: count - len(chosen)]
    chosen |= {part: part._replace(is_filler=True) for part in more}
    shown = [_without_margins(runs[each.run].text, each) for each in chosen.values()]
    return sorted(shown, key=lambda each: (each.rank, each.run, each.start))


def _rank_sentences(runs: Sequence[FoundRun], weights: Mapping[str, float]) -> list[_Sentences]:
    """Cut the runs, and score what they are cut into: by words with their neighbours, and by chunks."""
    cut = [_spans(run.text) for run in runs]
    words = [
        [tuple(stored_words(run.text[start:end])) for start, end in spans]
        for run, spans in zip(runs, cut, strict=True)
    ]
    scores = _score_words(words, weights)
    ranked = []
    for run, spans in zip(runs, cut, strict=True):
        by_rank = sorted(run.chunks, key=lambda chunk: chunk.rank)
        chunks = [_chunk_at(by_rank, start, end) or run.chunks[0] for start, end in spans]
        own = [
            next(scores) * (1 - CHUNK_SHARE + CHUNK_SHARE * chunk.strength**2) for chunk in chunks
        ]
        ranked.append(_Sentences(spans, own, chunks))
    return ranked


def _score_words(
    runs: Sequence[Sequence[Sequence[str]]], weights: Mapping[str, float]
) -> Iterator[float]:
    """Yield what the question's words count in each sentence of the runs: all are computed at once, with
    so much between two runs that none reaches the other."""
    import numpy as np

    held = _held_words(runs, weights)
    counts = [len(words) for run in runs for words in run]
    lengths = np.array([max(count, 1) for count in counts], float)
    slots = np.repeat(np.arange(len(runs)) * len(NEARNESS), [len(run) for run in runs])
    slots += np.arange(len(counts))
    rows: dict[str, int] = {}
    found = [
        (rows.setdefault(word, len(rows)), place)
        for place, words in enumerate(chain.from_iterable(held))
        for word in words
    ]
    has = np.zeros((len(rows), len(counts) + len(runs) * len(NEARNESS)))
    if found:
        row, place = np.array(found).T
        has[row, slots[place]] = damping(lengths, float(lengths.mean()))[place]
    scores = np.array([weights[word] for word in rows]) @ spread_out(has, NEARNESS)
    yield from scores[slots].tolist()


def _held_words(
    runs: Sequence[Sequence[Sequence[str]]], weights: Mapping[str, float]
) -> list[list[list[str]]]:
    """Return the question's words that each sentence has. A run's words are stemmed in its language, once each."""
    held = []
    for sentences in runs:
        counts = Counter(chain.from_iterable(sentences))
        asked = stems_among(weights.keys(), counts, language_of(counts))
        held.append([[asked[word] for word in words if word in asked] for words in sentences])
    return held


def _chunk_at(by_rank: Sequence[FoundChunk], start: int, end: int) -> FoundChunk | None:
    """Return the best chunk that has a part of this stretch."""
    return next((chunk for chunk in by_rank if chunk.start < end and chunk.end > start), None)


def _clusters(number: int, run: _Sentences, best: float) -> Iterator[tuple[Stretch, float]]:
    """Yield what is near to the best, each with its share of the best score."""
    near = [at for at, score in enumerate(run.scores) if 0 < NEAR_SHARE * best <= score]
    # The one put before them lies so far away that the first always begins a cluster.
    starts = [at for before, at in pairwise([-GAP - 2, *near]) if at - before > GAP + 1]
    for start, following in pairwise([*starts, len(run.scores) + GAP + 1]):
        last = max(at for at in near if at < following)
        yield _stretch(number, run, start, last), max(run.scores[start : last + 1]) / best


def _part(number: int, run: _Sentences, chunk: FoundChunk) -> Stretch | None:
    """Return what is shown of a chunk of which no sentence is near to the best: its best sentence, and more
    the stronger it is if that is for its meaning. All of it, if it has none of the words.

    None if better chunks have all of its sentences.
    """
    own = [at for at, each in enumerate(run.chunks) if each is chunk]
    if not own:
        return None
    top = max(own, key=lambda at: run.scores[at])
    if not run.scores[top]:
        is_whole = chunk.is_near and chunk.strength >= NEAR_SHARE
        return _stretch(number, run, own[0], own[-1 if is_whole else 0])
    first = last = top
    limit_chars = chunk.strength**POWER * (chunk.end - chunk.start) if chunk.is_near else 0
    while around := [at for at in (first - 1, last + 1) if own[0] <= at <= own[-1]]:
        at = max(around, key=lambda at: run.scores[at])
        start, end = run.spans[min(first, at)][0], run.spans[max(last, at)][1]
        if end - start > limit_chars:
            break
        first, last = min(first, at), max(last, at)
    return _stretch(number, run, first, last)


def _holds(stretch: Stretch, number: int, chunk: FoundChunk) -> bool:
    """Whether a stretch has a part of the chunk of the run with this number."""
    return stretch.run == number and stretch.start < chunk.end and stretch.end > chunk.start


def _stretch(number: int, run: _Sentences, first: int, last: int) -> Stretch:
    rank = min(chunk.rank for chunk in run.chunks[first : last + 1])
    return Stretch(number, run.spans[first][0], run.spans[last][1], rank)


def _spans(text: str) -> list[tuple[int, int]]:
    """Cut the text into sentences, rows and lines; lists that are short stay whole.

    A semicolon ends no sentence, although chunks may end there. A heading, or a line that ends in a colon, goes
    with what follows.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    pieces = list(pieces_of(text, size_tokens=PIECE_CHARS, count=len, is_source=False))
    for piece, following in pairwise([*pieces, None]):
        if piece is None or (following and _goes_on(text, start, piece, following)):
            continue
        spans.append((start, piece.end))
        start = piece.end
    return spans


def _goes_on(text: str, start: int, piece: Piece, following: Piece) -> bool:
    """Whether a sentence that begins at `start` must not end with this piece."""
    if piece.kind is BlockKind.HEADING:
        return True
    if following.end - start > PIECE_CHARS or following.kind is BlockKind.HEADING:
        return False
    ends = text[start : piece.end].rstrip()
    return (following.boundary is Boundary.LINE and piece.kind is BlockKind.PROSE) or ends.endswith(
        _GOES_ON
    )


def _without_margins(text: str, stretch: Stretch) -> Stretch:
    """Leave out white space at both ends."""
    shown = text[stretch.start : stretch.end].rstrip()
    margin = len(shown) - len(shown.lstrip())
    return stretch._replace(start=stretch.start + margin, end=stretch.start + len(shown))
