"""Hold what the caller of `python -m bench.quality` brings along: data of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EmbedderOption:
    """An embedding model to measure with: where it answers (OpenAI's protocol), its name, its size."""

    url: str
    model: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class QualityOptions:
    """`locomo`: conversations in the JSON of LoCoMo (https://github.com/snap-research/locomo). `sets`:
    questions with documents, in SQuAD's JSON or BEIR's folders. `chroma`: folders with excerpts of
    texts (`bench.quality.excerpts`). `quick`: one chat a language, fewer persons, and every fourth
    question to a library. `embedder`: used beside the stand-ins
    for memories, and in their place for chats."""

    locomo: Path | None = None
    sets: Sequence[Path] = ()
    chroma: Sequence[Path] = ()
    quick: bool = False
    embedder: EmbedderOption | None = None
