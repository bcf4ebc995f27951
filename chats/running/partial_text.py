"""Text of the step under way, kept in the turn's row while the model speaks.

A crash may take back what a second showed, or 2 KB of it (docs/architecture.md). Decides when; what
was shown, and how it is written, is told by whoever runs the turn.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

PARTIAL_SECONDS: Final = 1.0
PARTIAL_CHARS: Final = 2_048

Shown = tuple[int, str, int]
"""The step, its text as viewers were sent it, and the number of the last event that told of it."""


class PartialText:
    """`shown` gives the text of the step under way, `keep` writes it."""

    def __init__(
        self, shown: Callable[[], Shown], keep: Callable[[int, str, int], Awaitable[None]]
    ) -> None:
        self._shown = shown
        self._keep = keep
        self._wanted = asyncio.Event()
        self._kept_chars = 0

    def grew(self, chars: int) -> None:
        """The step's text is so long now."""
        if chars - self._kept_chars >= PARTIAL_CHARS:
            self._wanted.set()

    async def keep_forever(self) -> None:
        """Until it is cancelled."""
        kept = (0, 0)
        while True:
            await self._due()
            step, text, seq = self._shown()
            if text and (step, len(text)) != kept:
                await self._keep(step, text, seq)
                kept = (step, len(text))
            self._kept_chars = len(text)

    async def _due(self) -> None:
        try:
            async with asyncio.timeout(PARTIAL_SECONDS):
                await self._wanted.wait()
        except TimeoutError:
            pass
        self._wanted.clear()
