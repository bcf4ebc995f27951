"""Remember whether this web process is about to end, and tell those who hold streams open.

First it *drains*: it says that it is not ready, so that balancers send nobody new, and answers all the same. Then
viewers *part*: streams that can be resumed end, and their viewers come again elsewhere. `amber.lib.rest.stopping` says
when; this module knows neither signals nor servers.
"""

from collections.abc import Callable
from typing import Final


class Drain:
    """What a process knows of its own end. Only its event loop changes it."""

    def __init__(self) -> None:
        self.is_draining = False
        self.is_parting = False
        self._farewells: list[Callable[[], None]] = []

    def on_parting(self, farewell: Callable[[], None]) -> None:
        """Call it on the event loop once viewers part."""
        self._farewells.append(farewell)

    def begin(self) -> None:
        self.is_draining = True

    def part(self) -> None:
        self.is_draining = self.is_parting = True
        for farewell in self._farewells:
            farewell()


drain: Final = Drain()
"""Of this process."""
