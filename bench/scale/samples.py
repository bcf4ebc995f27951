"""Make samples of messages, blocks, memories and chunks, by Amber's own code, for rows to draw from.

A row of an installation repeats the text and the words of a sample: what Postgres does with ten million
rows does not depend on whether each was said once or a hundred times, and words keep their frequencies.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from amber.lib.search.hybrid import index_text
from amber.lib.search.words import tsvector_literal
from bench.library_search import TOPICS, World
from chats.messages.block_words import count_words, index_pieces
from engine.context.blocks import SpokenMessage, render
from engine.context.pieces import cut_run, store_pieces
from libraries.chunking.chunk_words import chunk_words, tsvector_bytes
from libraries.embedding.halfvec import halfvec_text

MESSAGES: Final = 20_000
"""Even numbers are questions, odd ones answers."""
BLOCKS, MEMORIES, CHUNKS, VECTORS = 500, 1_000, 4_000, 2_000
QUESTION_WORDS, ANSWER_WORDS, MEMORY_WORDS, CHUNK_WORDS = 10, 25, 8, 60
BLOCK_MESSAGES: Final = 20
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_ZERO: Final = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Samples:
    """All samples. `chunks` are (topic, text, counted words)."""

    messages: list[tuple[int, str, str]]
    blocks: list[tuple[int, str, list[int], str, int]]
    memories: list[tuple[int, str, str]]
    vectors: list[tuple[int, str]]
    chunks: list[tuple[int, str, Any]]


def read_samples(path: Path) -> Samples:
    """Read the samples that were made before, or make them: that takes a minute or more."""
    if not path.exists():
        world = new_world()
        made = Samples(
            list(messages(world)),
            list(blocks(world)),
            list(memories(world)),
            list(vectors(world)),
            chunks(world),
        )
        path.write_bytes(pickle.dumps(made))
    kept: Samples = pickle.loads(path.read_bytes())  # noqa: S301  (this bench's own)
    return kept


def new_world() -> World:
    return World(np.random.default_rng(1))


def messages(world: World) -> Iterator[tuple[int, str, str]]:
    """Yield (number, text, tsvector)."""
    for number in range(MESSAGES):
        text = _said(world, number)
        yield number, text, tsvector_literal(text)


def _said(world: World, number: int) -> str:
    words = ANSWER_WORDS if number % 2 else QUESTION_WORDS
    return world.text(int(world.rng.integers(TOPICS)), words)


def blocks(world: World) -> Iterator[tuple[int, str, list[int], str, int]]:
    """Yield (number, text, pieces, tsvector without the chat's word, tokens)."""
    from uuid import UUID

    chat = UUID(_ZERO)
    for number in range(BLOCKS):
        run = [
            SpokenMessage(str(chat), role, _said(world, each), _EPOCH, 10 + 25 * (each % 2))
            for each, role in enumerate(("human", "assistant") * (BLOCK_MESSAGES // 2))
        ]
        content = render(run)
        pieces = cut_run(run, count_words)
        words = index_pieces(content, pieces, run, chat).partition(" ")[2]
        yield number, content, store_pieces(pieces), words, sum(each.tokens for each in run)


def memories(world: World) -> Iterator[tuple[int, str, str]]:
    """Yield (number, text, tsvector without the owner's word)."""
    for number in range(MEMORIES):
        text = world.text(int(world.rng.integers(TOPICS)), MEMORY_WORDS)
        yield number, text, index_text(text, "owner").partition(" ")[2]


def vectors(world: World) -> Iterator[tuple[int, str]]:
    for number in range(VECTORS):
        yield number, halfvec_text(world.vector(number % TOPICS))


def chunks(world: World) -> list[tuple[int, str, Any]]:
    """Return (topic, text, counted words without the library's)."""
    from uuid import UUID

    library = UUID(_ZERO)
    made = []
    for number in range(CHUNKS):
        topic = number % TOPICS
        text = world.text(topic, CHUNK_WORDS)
        counted = chunk_words(library, "bench.txt", "", text).counted
        made.append((topic, text, {w: n for w, n in counted.items() if not w.startswith("=")}))
    return made


def chunk_tsvector(counted: Any, library_word: str) -> bytes:
    return tsvector_bytes({**counted, library_word: 1})
