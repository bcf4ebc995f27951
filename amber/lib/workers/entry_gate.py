"""Let few pieces of work through at once, first come first served.

Python runs one thread at a time: of 64 turns that begin together each would get a 64th of it, and all
be ready at the end. Through a gate the first is ready at once, and the last no later.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class EntryPlace:
    """A place in the gate. It may be left before its block ends, once."""

    def __init__(self, gate: "EntryGate") -> None:
        self._gate: EntryGate | None = gate

    def leave(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            gate._release()


class EntryGate:
    """Has `places`. Who comes while all are taken waits; first come, first served."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def place(self) -> Iterator[EntryPlace]:
        """Wait for a place, and have it until it is left, or the block ends."""
        self._acquire()
        place = EntryPlace(self)
        try:
            yield place
        finally:
            place.leave()

    def _acquire(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Event()
            self._waiting.append(turn)
        try:
            turn.wait()
        except BaseException:  # a worker that is told to stop: nobody must wait for its place
            self._forget(turn)
            raise

    def _forget(self, turn: threading.Event) -> None:
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return
        # It was let in meanwhile, and passes its place on.
        self._release()

    def _release(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
