"""Call listeners of other apps in the transaction in which a turn ends, or begins to wait.

    register(listener)    adds one, when its app starts
    announce(turn)        calls them all, after the turn's new state is set and before it commits

Viewers have the turn's events; this is for what must not be lost. A listener is quick, and does
nothing but write rows.
"""

from collections.abc import Callable

from chats.models import Turn

Listener = Callable[[Turn], None]

_listeners: list[Listener] = []


def register(listener: Listener) -> None:
    """Add a listener; a second time changes nothing."""
    if listener not in _listeners:
        _listeners.append(listener)


def announce(turn: Turn) -> None:
    """Call all listeners, in the caller's transaction. Raises what they raise."""
    for listener in _listeners:
        listener(turn)
