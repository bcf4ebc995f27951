"""Find the memory that somebody means by words of their own, or the candidates for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from memory.facts.fact_matching import fingerprint
from memory.facts.facts import known_to
from memory.models import Memory
from memory.owner import Owner
from memory.recall.embedding import embedded_or_none
from memory.recall.recall import recall

CLEAR_RELEVANCE: Final = 0.5
"""A clear match holds half of what was said, by weight of its words."""

CLEAR_LEAD: Final = 0.75
"""After a clear match the next best memory is at most this share as relevant."""

MAX_CANDIDATES: Final = 10
_TOKENS: Final = 2_000


@dataclass(frozen=True, slots=True)
class MemoryMatches:
    """The memory that is clearly meant, or else the `candidates`, best first."""

    clear: Memory | None = None
    candidates: Sequence[Memory] = ()


def matching(owner: Owner, words: str, *, assistant_id: UUID | None = None) -> MemoryMatches:
    """Find what the words mean; a memory with the same words is always clear.

    At most one call of the embedder, and four queries.
    """
    same = known_to(owner, assistant_id).filter(content_md5=fingerprint(words)).first()
    if same is not None:
        return MemoryMatches(same)
    found = recall(
        owner,
        words,
        limit_tokens=_TOKENS,
        assistant_id=assistant_id,
        embedded=embedded_or_none(words, owner=owner),
        is_personal=True,
    )
    ranked = list(found.items())[:MAX_CANDIDATES]
    if ranked and ranked[0][1] >= CLEAR_RELEVANCE:
        best, relevance = ranked[0]
        if all(other <= relevance * CLEAR_LEAD for _, other in ranked[1:]):
            return MemoryMatches(best)
    return MemoryMatches(candidates=[memory for memory, _ in ranked])
