"""Bound one reply of a provider, which may go on for as long as the turn has time.

Pure. What a reply holds is counted in characters: text, reasoning, arguments of calls, and other
fields. Refuses nothing itself: text is cut where the bound is, and whoever gathers the reply ends it.
"""

from typing import Final

MAX_REPLY_CHARS: Final = 1_000_000
"""The reason is in docs/settings.md (AMBER_MAX_REPLY_CHARS)."""

MAX_CALLS: Final = 128
"""Calls of one reply, which are made at once: as many as tools are offered. Models ask for some dozens."""


class ReplySize:
    """Counts what a reply holds by now."""

    def __init__(self, max_chars: int = MAX_REPLY_CHARS) -> None:
        self._left_chars = max_chars

    @property
    def is_exceeded(self) -> bool:
        return self._left_chars < 0

    def take(self, text: str) -> str:
        """Count a text, and return as much of it as still fits."""
        left = max(self._left_chars, 0)
        self._left_chars -= len(text)
        return text if len(text) <= left else text[:left]

    def count(self, chars: int) -> None:
        self._left_chars -= chars

    def count_call(self, number: int) -> None:
        """Count the call with this number, from 1: one too many is no part of the reply."""
        if number > MAX_CALLS:
            self._left_chars = -1
