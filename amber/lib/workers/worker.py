"""This worker process: its name, and whether it is on its way out."""

import os
import secrets
import socket
from dataclasses import dataclass, field


@dataclass(slots=True)
class Worker:
    """`name` is unique per process start, so that no successor inherits leases."""

    name: str
    is_draining: bool = False
    consuming_at: float = field(default=0.0)
    """time.monotonic() at which the consumer's own loop last showed that it runs."""


_workers: dict[int, Worker] = {}


def this_worker() -> Worker:
    pid = os.getpid()
    if pid not in _workers:
        _workers[pid] = Worker(f"{socket.gethostname()[:60]}:{pid}:{secrets.token_hex(4)}")
    return _workers[pid]
