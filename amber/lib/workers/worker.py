"""Describe this worker process: its name, and whether it is draining."""

import os
import secrets
import socket
from dataclasses import dataclass, field


@dataclass(slots=True)
class Worker:
    """A worker process. `name` is unique per start, so that no successor inherits leases."""

    name: str
    is_draining: bool = False
    consuming_at: float = field(default=0.0)
    """The time.monotonic() at which the consumer's own loop last ran."""


_workers: dict[int, Worker] = {}


def this_worker() -> Worker:
    pid = os.getpid()
    if pid not in _workers:
        _workers[pid] = Worker(f"{socket.gethostname()[:60]}:{pid}:{secrets.token_hex(4)}")
    return _workers[pid]
