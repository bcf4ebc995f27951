"""Save the text of the step under way in the turn's row while the model speaks.

A crash may take back what one second showed, or 2 KB of it (docs/architecture.md). This module
decides when to save; the runner says what was shown, and writes it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

PARTIAL_SECONDS: Final = 1.0
PARTIAL_CHARS: Final = 2_048

Shown = tuple[int, str, int]
"""The step, its text as it was sent to viewers, and the number of the last event that held it."""


class PartialText:
    """Saves a turn's text: `shown` returns the text of the step under way, `save` writes it."""

    def __init__(
        self, shown: Callable[[], Shown], save: Callable[[int, str, int], Awaitable[None]]
    ) -> None:
        self._shown = shown
        self._save = save
        self._wanted = asyncio.Event()
        self._kept_chars = 0

    def note_length(self, chars: int) -> None:
        """Learn how long the step's text is now; enough new text is saved at once."""
        if chars - self._kept_chars >= PARTIAL_CHARS:
            self._wanted.set()

    async def save_forever(self) -> None:
        """Save the text whenever it is due, until the task is cancelled."""
        kept = (0, 0)
        while True:
            await self._wait_until_due()
            step, text, seq = self._shown()
            if text and (step, len(text)) != kept:
                await self._save(step, text, seq)
                kept = (step, len(text))
            self._kept_chars = len(text)

    async def _wait_until_due(self) -> None:
        try:
            async with asyncio.timeout(PARTIAL_SECONDS):
                await self._wanted.wait()
        except TimeoutError:
            pass
        self._wanted.clear()
