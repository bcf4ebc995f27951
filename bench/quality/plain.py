"""Rank messages by plain methods, for comparison: what one would write first.

BM25 over single messages, the same with half of each neighbour's score, vectors alone, and both by
reciprocal ranks with the usual k of 60. None has a gate: each always finds something.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

import numpy as np

from amber.lib.search.languages import language_of
from amber.lib.search.stems import count_stems, stem
from amber.lib.search.words import asked_words, stored_words
from bench.quality.conversations import RecordedConversation
from bench.quality.embedders import Embedder
from engine.relevance.bm25 import score
from engine.relevance.fusion import reciprocal_ranks
from engine.relevance.measures import idf

USUAL_K: Final = 60
HALF_OF_NEIGHBOURS: Final = (0.5, 1.0, 0.5)

PlainMethod = Callable[[str], list[int]]
"""Returns the places of messages, best first."""


class PlainBM25:
    """The textbook's BM25 over texts, each given as its counted words; all words weigh alike."""

    def __init__(self, texts: Sequence[Mapping[str, int]]) -> None:
        self._texts = texts
        self._lengths = [sum(counted.values()) for counted in texts]
        self._mean = fmean(self._lengths)
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, counted in enumerate(texts):
            for word in counted:
                self._places[word].append(place)

    def scores(self, asked: Iterable[str]) -> list[float]:
        """Return the score of each text, 0 for those without a word of the question."""
        held = {word: self._places[word] for word in asked if word in self._places}
        weights = {word: idf(len(places), len(self._texts)) for word, places in held.items()}
        found = [0.0] * len(self._texts)
        for place in {place for places in held.values() for place in places}:
            length = self._lengths[place]
            found[place] = score(weights, self._texts[place], length=length, mean_length=self._mean)
        return found


def plain_methods(conversation: RecordedConversation, embedder: Embedder) -> dict[str, PlainMethod]:
    """Return the methods by name, ready for questions to this conversation."""
    texts = [message.text for message in conversation.said]
    words = [Counter(stored_words(text)) for text in texts]
    language = language_of(sum(words, Counter()))
    by_words = PlainBM25([count_stems(counted, language) for counted in words])
    vectors = embedder.embed(texts)

    def scores(question: str) -> list[float]:
        return by_words.scores({stem(word, language) for word in asked_words(question)})

    def dense(question: str) -> list[int]:
        near = vectors @ embedder.embed([question])[0]
        return [int(place) for place in np.argsort(-near, kind="stable")]

    def bm25(question: str) -> list[int]:
        return best_first(scores(question))

    def neighbours(question: str) -> list[int]:
        return best_first(np.convolve(scores(question), HALF_OF_NEIGHBOURS, "same").tolist())

    def fused(question: str) -> list[int]:
        ranks = reciprocal_ranks([(bm25(question), 1.0), (dense(question), 1.0)], k=USUAL_K)
        return sorted(ranks, key=lambda place: (-ranks[place], place))

    return {
        "BM25, single messages": bm25,
        "BM25, half of each neighbour": neighbours,
        "vectors": dense,
        "both by reciprocal ranks": fused,
    }


def best_first(scores: Sequence[float]) -> list[int]:
    """Return the places that have a score."""
    return sorted(
        (place for place, value in enumerate(scores) if value > 0),
        key=lambda place: (-scores[place], place),
    )
