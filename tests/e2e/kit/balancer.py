"""A balancer between two web processes: it asks each whether it is ready, and repeats only what was refused."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

from tests.e2e.kit.client import Answer, Client, Headers

LOOK_SECONDS = 0.1
TRIES = 600
"""Of 0.1 s: both may be away for as long as one takes to start on a busy machine."""


class Balancer:
    """Knows which of its ports take requests. No process is asked twice the same thing unless it refused."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = tuple(ports)
        self._ready = set(ports)
        self._next = cycle(ports)
        self._lock = threading.Lock()
        self.is_over = threading.Event()

    def look(self) -> None:
        for port in self._ports:
            is_ready = Client(port).get("/readyz?of=process", is_checked=False).status == 200
            with self._lock:
                (self._ready.add if is_ready else self._ready.discard)(port)

    def port(self) -> int:
        """Return the next one that is ready, or the next one if none is."""
        with self._lock:
            return next((p for p in self._turn() if p in self._ready), next(self._next))

    def _turn(self) -> list[int]:
        return [next(self._next) for _ in self._ports]

    def watch(self) -> None:
        while not self.is_over.wait(LOOK_SECONDS):
            self.look()


@contextmanager
def balancing(*ports: int) -> Iterator[Balancer]:
    balancer = Balancer(ports)
    thread = threading.Thread(target=balancer.watch)
    thread.start()
    try:
        yield balancer
    finally:
        balancer.is_over.set()
        thread.join()


class BalancedClient(Client):
    """A person whose requests go through the balancer."""

    def __init__(self, balancer: Balancer, key: str) -> None:
        self._balancer = balancer
        super().__init__(0, key)

    @property
    def port(self) -> int:
        return self._balancer.port()

    @port.setter
    def port(self, _: int) -> None:
        """Do nothing: the balancer has the ports."""

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Headers | None = None,
        is_checked: bool = True,
    ) -> Answer:
        """Raises OSError if a request was lost, which a refused connection is not."""
        for _ in range(TRIES):
            try:
                return super().request(method, path, body, headers=headers, is_checked=is_checked)
            except ConnectionRefusedError:
                self._balancer.is_over.wait(LOOK_SECONDS)
        raise ConnectionRefusedError(path)
