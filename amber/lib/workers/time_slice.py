"""Bound how long a periodic job works in one go: the other jobs wait behind it."""

import time
from typing import Final

SLICE_SECONDS: Final = 20.0


class TimeSlice:
    """The time that a job has; what is left then is for its next run."""

    def __init__(self, seconds: float | None = None) -> None:
        self._until = time.monotonic() + (SLICE_SECONDS if seconds is None else seconds)

    def is_over(self) -> bool:
        return time.monotonic() >= self._until
