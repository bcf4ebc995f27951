"""One process of the cluster, with all that it started: begun, killed as a machine dies, stopped, by pid."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from amber.processes import Account, spawn, stop
from tests.cluster.programs import ROOT

STOP_SECONDS = 40


@dataclass(eq=False)
class Member:
    """A process that may die and be started again. `is_ready` says whether it does its work."""

    name: str
    argv: list[str]
    log: Path
    is_ready: Callable[[], bool]
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start it; whoever needs it waits until it is ready. Called from the main thread."""
        with self.log.open("ab") as output:
            self.process = spawn(
                self.argv,
                env=self.environ,
                account=self.account,
                orphaned=self.stop_signal,
                output=output,
                cwd=ROOT,
            )

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def pids(self) -> list[int]:
        """Return its own, and those of all that it started."""
        with suppress(psutil.NoSuchProcess):
            return [self.pid, *(p.pid for p in psutil.Process(self.pid).children(recursive=True))]
        return []

    def kill(self) -> None:
        """End it and all that it started without a word, as the machine that they run on dies."""
        if self.process is None:
            return
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.is_alive:
            stop(self.process, how=self.stop_signal, grace_seconds=STOP_SECONDS)
