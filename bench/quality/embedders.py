"""Embed with a model that the caller of a measure names, or with a stand-in where none can be had.

The stand-in is latent semantic analysis over the texts at hand. It knows which words and parts of words
occur together in these texts, and nothing of the world: a real one knows more synonyms.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np

from amber.lib.search.words import stored_words
from amber.lib.workers.thread_bridge import run_on_loop
from bench.quality.options import EmbedderOption
from engine.provider.client import Endpoint
from engine.provider.embedding import OpenAIEmbedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

DIMENSIONS: Final = 200
FEATURES: Final = 1 << 14
PART_CHARS: Final = 4


class RealEmbedder:
    """Asks for each text once; a measure asks the same questions again and again."""

    def __init__(self, named: EmbedderOption) -> None:
        self._embedder = OpenAIEmbedder(
            named.model,
            named.dimensions,
            Endpoint(named.url, os.environ.get("OPENAI_API_KEY", "none")),
        )
        self._known: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return (n, dimensions) float32, L2-normalised. Raises ProviderError."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            vectors = run_on_loop(lambda _: self._embedder.embed(missing))
            self._known |= dict(zip(missing, vectors, strict=True))
        return np.stack([self._known[text] for text in texts])


class StandInEmbedder:
    """Learns from all texts of a set, and embeds them and questions to them."""

    def __init__(self, texts: Sequence[str]) -> None:
        counted = _features(texts)
        held = (counted > 0).sum(axis=0)
        self._idf = np.log((1 + len(texts)) / (1 + held)).astype(np.float32)
        weighed = _normalised(counted * self._idf)
        values, left = np.linalg.eigh(weighed @ weighed.T)
        best = np.argsort(-values)[: min(DIMENSIONS, len(texts))]
        best = best[values[best] > 1e-6]
        self._axes = weighed.T @ (left[:, best] / np.sqrt(values[best]))
        self.dimensions = len(best)

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return (n, dimensions) float32, L2-normalised."""
        return _normalised(_normalised(_features(texts) * self._idf) @ self._axes)


Embedder = RealEmbedder | StandInEmbedder


def _features(texts: Sequence[str]) -> "Vectors":
    counted = np.zeros((len(texts), FEATURES), np.float32)
    for row, text in enumerate(texts):
        for word in stored_words(text):
            parts = [word[at : at + PART_CHARS] for at in range(max(len(word) - PART_CHARS + 1, 1))]
            for part in {word, *parts}:
                counted[row, crc32(part.encode()) % FEATURES] += 1
    return np.asarray(np.log1p(counted))


def _normalised(rows: "Vectors") -> "Vectors":
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)
