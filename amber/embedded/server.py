"""Describe an embedded server, and run one for as long as a block of code."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from amber.processes import Account, spawn, stop, wait_until


class EmbeddedError(Exception):
    """An embedded server cannot be run here; the message says why and what to do."""


@dataclass(frozen=True)
class Server:
    """How to run one server, where to reach it, how to ask it to stop, and whether it answers."""

    name: str
    argv: list[str]
    url: str
    stop_signal: signal.Signals
    is_ready: Callable[[int], bool]  # takes the process id
    account: Account | None = None


@contextlib.contextmanager
def running(
    server: Server, *, output: IO[bytes] | None = None, timeout_seconds: float = 60
) -> Iterator[int]:
    """Run the server for the block, which gets its process id. Raises EmbeddedError."""
    process = spawn(
        server.argv,
        env=os.environ,
        account=server.account,
        orphaned=server.stop_signal,
        output=output,
    )
    try:
        if not wait_until(
            lambda: process.poll() is not None or server.is_ready(process.pid),
            timeout_seconds=timeout_seconds,
        ):
            raise EmbeddedError(f"{server.name} did not answer within {timeout_seconds:.0f} s.")
        if process.returncode is not None:
            raise EmbeddedError(f"{server.name} ended at once, with status {process.returncode}.")
        yield process.pid
    finally:
        stop(process, how=server.stop_signal, grace_seconds=30)


def make_var(var: Path) -> Path:
    """Create the var directory, private; root's lets other accounts pass, but not look."""
    if not var.exists():
        var.mkdir(parents=True)
        var.chmod(0o711 if os.geteuid() == 0 else 0o700)
    return var.resolve()
