"""Hold what the caller of `python -m bench.quality` brings along: data of their own."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class QualityOptions:
    """`locomo`: conversations in the JSON of LoCoMo (https://github.com/snap-research/locomo). `quick`:
    one chat a language."""

    locomo: Path | None = None
    quick: bool = False
