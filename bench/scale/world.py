"""Say what lies in an installation: how many of everything, whose, how long, and when.

Sizes are skewed as people's are: organization n has a share of 1 / n^0.9, the length of chats follows
Pareto's law. One organization, the *probe*, is the same in every installation: what it costs there shows
what the others' rows cost it. Everything is drawn from one seed. It knows no database.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
DAY_MS: Final = 86_400_000
SPAN_MS: Final = 365 * DAY_MS
NAMESPACE: Final = UUID("0197b2b0-0000-7000-8000-000000000017")
SHARE_EXPONENT: Final = 0.9
LENGTH_EXPONENT: Final = 1.1
LONGEST: Final = 20_000


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows, the probe's left out. `people` have a login."""

    organizations: int
    people: int
    chats: int
    messages: int
    chunks: int


SIZES: Final = {
    "reference": Size(60, 300, 500, 50_000, 10_000),
    "small": Size(100, 600, 1_000, 100_000, 20_000),
    "medium": Size(100, 1_000, 10_000, 1_000_000, 100_000),
    "full": Size(1_000, 10_000, 100_000, 10_000_000, 1_000_000),
}
PROBE_PEOPLE: Final = 10
PROBE_CHATS: Final = (2_000, 600, 300, 200, 100, *[50] * 20, *[20] * 175)
"""Messages of its chats; the first fifty are those of its first person."""
PROBE_OF_FIRST: Final = 50
PROBE_LIBRARIES: Final = (500, 2_500, 20_000)
"""Chunks. The last is large enough for the index of vectors where others have few chunks."""
LIBRARY_CHUNKS: Final = 5_000
"""Of other organizations' libraries, at most."""
DOCUMENT_CHUNKS: Final = 20


@dataclass(frozen=True)
class World:
    """The rows of one installation as columns; organization 0 is the probe.

    `user_organization` is ascending. A library lists its chunks in documents of DOCUMENT_CHUNKS.
    """

    size: Size
    seed: int = 17

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        weights = 1 / np.arange(1, self.size.organizations + 1) ** SHARE_EXPONENT
        return np.asarray(weights / weights.sum(), np.float64)

    @cached_property
    def user_organization(self) -> Numbers:
        counts = np.maximum(1, np.round(self.shares * self.size.people)).astype(np.int64)
        others = np.repeat(np.arange(1, self.size.organizations + 1), counts)
        return np.concatenate([np.zeros(PROBE_PEOPLE, np.int64), others])

    @cached_property
    def chats(self) -> dict[str, Numbers]:
        """Columns: user (its number), length in messages, start_ms, gap_ms between messages."""
        rng = np.random.default_rng(self.seed)
        count = self.size.chats
        owners = _owners(rng, self.user_organization, self.shares, count)
        lengths = _lengths(rng, count, self.size.messages)
        probe = np.asarray(PROBE_CHATS)
        probe_owners = 1 + np.arange(len(probe)) % (PROBE_PEOPLE - 1)
        probe_owners[:PROBE_OF_FIRST] = 0
        user = np.concatenate([probe_owners, owners])
        length = np.concatenate([probe, lengths])
        gap = rng.integers(20_000, 1_800_000, len(length))
        gap = np.minimum(gap, (SPAN_MS - DAY_MS) // length)
        latest = np.maximum(1, SPAN_MS - length * gap)
        start = _now_ms() - SPAN_MS + (rng.random(len(length)) * latest).astype(np.int64)
        return {"user": user, "length": length, "start_ms": start, "gap_ms": gap}

    @cached_property
    def libraries(self) -> list[tuple[int, int]]:
        """Return (organization, chunks) of each."""
        made = [(0, count) for count in PROBE_LIBRARIES]
        for number, share in enumerate(self.shares, 1):
            rest = max(20, round(share * self.size.chunks))
            while rest > 0:
                made.append((number, min(rest, LIBRARY_CHUNKS)))
                rest -= LIBRARY_CHUNKS
        return made


def row_id(kind: str, number: int) -> UUID:
    """Return the id of an organization, a person, an assistant or a library: the same in each run."""
    return uuid5(NAMESPACE, f"{kind}-{number}")


def _owners(
    rng: np.random.Generator, user_organization: Numbers, shares: Any, count: int
) -> Numbers:
    """Draw whose each chat is: by the organization's share, then anybody of its people."""
    organizations = 1 + rng.choice(len(shares), count, p=shares)
    first = np.searchsorted(user_organization, organizations)
    after = np.searchsorted(user_organization, organizations, side="right")
    return np.asarray(first + (rng.random(count) ** 2 * (after - first)).astype(np.int64), np.int64)


def _lengths(rng: np.random.Generator, count: int, total: int) -> Numbers:
    """Draw even lengths by Pareto's law that sum up to about `total`."""
    raw = 1 + rng.pareto(LENGTH_EXPONENT, count)
    factor = total / raw.sum()
    for _ in range(20):  # until what the longest lose has gone to the others
        lengths = np.clip(raw * factor, 2, LONGEST)
        factor *= total / lengths.sum()
    return np.asarray(2 * np.round(lengths / 2), np.int64)


def _now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1_000)
