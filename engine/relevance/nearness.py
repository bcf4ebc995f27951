"""Let what a text has count for the texts around it.

People answer each other, and a sentence explains the one before it: a word tells about its neighbours, too.
Nearby occurrences add up as probabilities do, to at most one full one, so that two words of a question beat
one word twice. Chats rank messages so (`engine.context.ranking`), libraries sentences
(`libraries.retrieval.stretches`). Pure; numpy is imported by its callers, on first use.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.relevance.bm25 import K1, B

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


def damping(lengths: "Numbers", mean_length: float) -> "Numbers":
    """Return what one occurrence is worth in each text, at most 1: less in a long one."""
    worth: Numbers = 1 / (1 + K1 * (1 - B + B * lengths / mean_length))
    return worth


def spread_out(values: "Numbers", shares: Sequence[float]) -> "Numbers":
    """Return values, each 0 to 1, with what their neighbours along the last axis add.

    `shares` is what a value counts where it is, and one, two, … places away.
    """
    rest: Any = 1 - values * shares[0]
    for distance, share in enumerate(shares[1 : values.shape[-1]], 1):
        near = 1 - values * share
        rest[..., distance:] *= near[..., :-distance]
        rest[..., :-distance] *= near[..., distance:]
    spread: Numbers = 1 - rest
    return spread
