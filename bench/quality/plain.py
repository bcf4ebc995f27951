"""Rank messages by plain methods, for comparison: what one would write first.

BM25 over single messages, the same with half of each neighbour's score, vectors alone, and both by
reciprocal ranks with the usual k of 60. None has a gate: each always finds something.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from amber.lib.search.languages import language_of
from amber.lib.search.stems import count_stems, stem
from amber.lib.search.words import asked_words, stored_words
from bench.quality.conversations import RecordedConversation
from bench.quality.real_embedder import RealEmbedder
from bench.quality.stand_in import StandInEmbedder
from engine.relevance.bm25 import score, with_neighbours, word_weights
from engine.relevance.fusion import reciprocal_ranks

USUAL_K: Final = 60

PlainMethod = Callable[[str], list[int]]
"""Returns the places of messages, best first."""


def plain_methods(
    conversation: RecordedConversation, embedder: StandInEmbedder | RealEmbedder
) -> dict[str, PlainMethod]:
    """Return the methods by name, ready for questions to this conversation."""
    texts = [message.text for message in conversation.said]
    words = [Counter(stored_words(text)) for text in texts]
    language = language_of(sum(words, Counter()))
    held = [count_stems(counted, language) for counted in words]
    lengths = [counted.total() for counted in held]
    mean_length = sum(lengths) / len(lengths)
    counts = Counter(word for counted in held for word in counted)
    vectors = embedder.embed(texts)

    def scores(question: str) -> list[float]:
        asked = {stem(word, language) for word in asked_words(question)}
        weights = word_weights({word: counts[word] for word in asked}, len(texts))
        return [
            score(weights, counted, length=length, mean_length=mean_length)
            for counted, length in zip(held, lengths, strict=True)
        ]

    def dense(question: str) -> list[int]:
        near = vectors @ embedder.embed([question])[0]
        return [int(place) for place in np.argsort(-near, kind="stable")]

    def bm25(question: str) -> list[int]:
        return _best_first(scores(question))

    def fused(question: str) -> list[int]:
        ranks = reciprocal_ranks([(bm25(question), 1.0), (dense(question), 1.0)], k=USUAL_K)
        return sorted(ranks, key=lambda place: (-ranks[place], place))

    return {
        "BM25, single messages": bm25,
        "BM25, half of each neighbour": lambda question: _best_first(
            with_neighbours(scores(question))
        ),
        "vectors": dense,
        "both by reciprocal ranks": fused,
    }


def _best_first(scores: Sequence[float]) -> list[int]:
    return sorted(
        (place for place, value in enumerate(scores) if value > 0),
        key=lambda place: (-scores[place], place),
    )
