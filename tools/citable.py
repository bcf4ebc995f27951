"""Number the passages that a turn may cite: only `[n]` links an answer to its sources.

Numbers count from 1 through the whole turn, whatever found the passages: first the search for its
question, then tool calls, several at once. The same passage keeps its number. Nothing is stored.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

Passage = dict[str, Any]
"""A passage in its wire form (`libraries.retrieval.passages.passage_wire`)."""


class CitablePassages:
    """The passages of one turn; those in `known` already have their numbers."""

    def __init__(self, known: Iterable[Passage] = ()) -> None:
        self._lock = Lock()
        self._by_number: dict[int, Passage] = {}
        self.keep(known)

    def __iter__(self) -> Iterator[Passage]:
        with self._lock:
            return iter(list(self._by_number.values()))

    def keep(self, numbered: Iterable[Passage]) -> None:
        """Add passages that were numbered elsewhere, before any that are numbered here."""
        with self._lock:
            for passage in numbered:
                self._by_number.setdefault(passage["number"], passage)

    def number(self, found: Iterable[Mapping[str, Any]]) -> Sequence[Passage]:
        """Return the same passages in their order, with the turn's numbers."""
        with self._lock:
            numbers = {_name(known): number for number, known in self._by_number.items()}
            return [self._number_passage(passage, numbers.get(_name(passage))) for passage in found]

    def _number_passage(self, passage: Mapping[str, Any], number: int | None) -> Passage:
        number = number or max(self._by_number, default=0) + 1
        return self._by_number.setdefault(number, {**passage, "number": number})


def _name(passage: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what identifies a passage: its place, as another question is shown another part of a chunk."""
    return passage["document"]["id"], passage["start"], passage["end"]
