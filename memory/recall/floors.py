"""Measure what a similarity is worth for one embedding model: where "nothing to do with it" ends.

No cosine is a threshold for two embedding models: unrelated texts reach 0.28 in MiniLM and 0.82 in
multilingual E5, and English and Chinese differ within one. Nor is it enough that a memory stands out
of the others: of twenty there is always one that does. So each model embeds the fixed texts of
`memory.recall.calibration_texts` once. Questions that no fact answers show how near chance comes
(`chance`: the median of each one's nearest fact), questions that one answers in other words how near
an answer is (`answer`, the median). A floor lies between. An embedder that cannot tell the two in a
script knows nothing of it, and its vectors do not count there. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memory.recall.calibration_texts import HAN, LATIN, CalibrationTexts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

SCRIPTS: Final[Mapping[str, CalibrationTexts]] = {"latin": LATIN, "han": HAN}

NEARLY_ALL: Final = 90
"""The percentile of chance that an answer must exceed, for an embedder that knows the script."""

_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN: Final = re.compile(r"[A-Za-zÀ-ÖØ-öø-ʯ]+")
_OTHER: Final = re.compile(r"[^\W\d_A-Za-zÀ-ÖØ-öø-ʯ\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class NearnessScale:
    """How near chance and answers come in one script. `is_known` is False where they are alike."""

    chance: float
    answer: float
    is_known: bool = True

    def at(self, share: float) -> float:
        """Return the similarity that lies so far on the way from chance (0) to an answer (1)."""
        return self.chance + share * (self.answer - self.chance)

    def share_of(self, similarity: float) -> float:
        """Return how far on that way a similarity lies; it may lie outside of 0 to 1."""
        return (similarity - self.chance) / (self.answer - self.chance)


def measure_nearness(texts: CalibrationTexts, vectors: "Vectors") -> NearnessScale:
    """Return the scale that the vectors of `texts.all`, in order, show for their script."""
    import numpy as np

    count = len(texts.facts)
    facts, answered, unanswered = vectors[:count], vectors[count : 2 * count], vectors[2 * count :]
    nearest = (unanswered @ facts.T).max(axis=1)
    answer = float(np.median((answered * facts).sum(axis=1)))
    is_known = answer > float(np.percentile(nearest, NEARLY_ALL))
    return NearnessScale(float(np.median(nearest)), answer, is_known)


def script_of(text: str) -> str | None:
    """Return the script that most of a text is written in, or None for one that is not measured.

    A sign of Han counts as much as a word of Latin letters.
    """
    han, latin = len(_HAN.findall(text)), len(_LATIN.findall(text))
    if len(_OTHER.findall(text)) > 2 * han + latin:
        return None
    return ("han" if han >= latin else "latin") if han or latin else None
