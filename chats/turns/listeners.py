"""Who else hears that a turn has ended, or waits: rooms above this one, in the same transaction.

    tell(listener)    once, when the room starts
    announce(turn)    by whoever writes the turn's new state, before it commits

Viewers have the turn's events; this is for what must not be lost. Listeners are quick, and write at
most.
"""

from collections.abc import Callable

from chats.models import Turn

Listener = Callable[[Turn], None]

_listeners: list[Listener] = []


def tell(listener: Listener) -> None:
    """Twice is once."""
    if listener not in _listeners:
        _listeners.append(listener)


def announce(turn: Turn) -> None:
    for listener in _listeners:
        listener(turn)
