"""Save the text of the step under way in the turn's row while the model speaks.

A crash may take back what one second showed, or 2 KB of it (docs/architecture.md). This module
decides when to save; the runner says what was shown, and writes it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

PARTIAL_SECONDS: Final = 1.0
PARTIAL_CHARS: Final = 2_048

REASONING_GROWTH: Final = 1 / 8
"""By how much reasoning must have grown to be saved again: thoughts are long, and saved whole."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """The step under way, its text and reasoning as they were sent to viewers, and the number of the
    last event that held them."""

    step: int
    text: str
    reasoning: str
    seq: int


class PartialText:
    """Saves a turn's text: `shown` returns the text of the step under way, `save` writes it."""

    def __init__(
        self, shown: Callable[[], ShownText], save: Callable[[ShownText], Awaitable[None]]
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
        kept = ShownText(0, "", "", 0)
        while True:
            await self._wait_until_due()
            shown = self._shown()
            if _is_worth_saving(shown, kept):
                await self._save(shown)
                kept = shown
            # Also where nothing was saved: the text of a new step begins at 0 again.
            self._kept_chars = len(shown.text)

    async def _wait_until_due(self) -> None:
        try:
            async with asyncio.timeout(PARTIAL_SECONDS):
                await self._wanted.wait()
        except TimeoutError:
            pass
        self._wanted.clear()


def _is_worth_saving(shown: ShownText, kept: ShownText) -> bool:
    if shown.step != kept.step or len(shown.text) != len(kept.text):
        return bool(shown.text or shown.reasoning)
    grown = len(shown.reasoning) - len(kept.reasoning)
    return grown != 0 and grown >= REASONING_GROWTH * len(kept.reasoning)
