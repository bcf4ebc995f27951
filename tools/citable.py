"""The passages that a turn may cite by number: `[n]` is all that joins an answer to its sources.

Numbers count from 1 through the whole turn, whatever found the passages: the search for its question, then
the calls of tools, several at once. The same passage keeps its number. Nothing is stored here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

Passage = dict[str, Any]
"""In its wire form (`libraries.retrieval.passages.passage_wire`)."""


class CitablePassages:
    """One turn's. `known` have their numbers already."""

    def __init__(self, known: Iterable[Passage] = ()) -> None:
        self._lock = Lock()
        self._by_number: dict[int, Passage] = {}
        self.keep(known)

    def __iter__(self) -> Iterator[Passage]:
        with self._lock:
            return iter(list(self._by_number.values()))

    def keep(self, numbered: Iterable[Passage]) -> None:
        """Passages that were numbered elsewhere, before any of ours."""
        with self._lock:
            for passage in numbered:
                self._by_number.setdefault(passage["number"], passage)

    def number(self, found: Iterable[Mapping[str, Any]]) -> Sequence[Passage]:
        """The same passages with the turn's numbers, in their order."""
        with self._lock:
            numbers = {_name(known): number for number, known in self._by_number.items()}
            return [self._number_passage(passage, numbers.get(_name(passage))) for passage in found]

    def _number_passage(self, passage: Mapping[str, Any], number: int | None) -> Passage:
        number = number or max(self._by_number, default=0) + 1
        return self._by_number.setdefault(number, {**passage, "number": number})


def _name(passage: Mapping[str, Any]) -> tuple[str, ...]:
    """Chunks make a passage: other neighbours joined make another."""
    return tuple(passage["chunk_ids"])
