"""Remember whether this web process is about to stop, and tell those who hold streams open.

First it *drains*: it says that it is not ready, so that balancers send nobody new, but answers whoever comes. Then it
*closes streams*: those that can be resumed end, and their viewers continue at another process.
`amber.lib.rest.stopping` says when; this module knows neither signals nor servers.
"""

from collections.abc import Callable
from typing import Final


class Drain:
    """What a process knows of its own end. Only its event loop changes it."""

    def __init__(self) -> None:
        self.is_draining = False
        self.is_closing = False
        self._callbacks: list[Callable[[], None]] = []

    def on_closing(self, callback: Callable[[], None]) -> None:
        """Call it on the event loop when streams close."""
        self._callbacks.append(callback)

    def begin(self) -> None:
        self.is_draining = True

    def close_streams(self) -> None:
        self.is_draining = self.is_closing = True
        for callback in self._callbacks:
            callback()


drain: Final = Drain()
"""Of this process."""
