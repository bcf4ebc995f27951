"""Keep children running: pass on their output, restart those that die, stop them in order.

One thread around one select(), with no library beside the standard one, because this process
stays for as long as Amber runs. It refuses to know what the children are: that is `amber.up`.

Why not circus: circusd holds 32 MB with five watchers, this 17, of the 400 that Amber allows
itself when idle. Circus also stops all watchers at once (`Arbiter._stop_watchers`) where the order
matters, and listens for commands on a socket that would have to be guarded.
"""

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import IO

from amber.processes import Account, kill_session, spawn

# A process that lived this long did not fail at its start: it is restarted at once.
SETTLED_SECONDS = 30
LONGEST_PAUSE_SECONDS = 30
TICK_SECONDS = 0.5
LONG_LOG_BYTES = 10_000_000


@dataclass(eq=False)
class Child:
    """A process to keep alive, and its state."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    stop_signal: signal.Signals = signal.SIGTERM
    grace_seconds: float = 60
    yields: bool = True  # to a second Ctrl-C, which cuts its grace short
    orphaned: signal.Signals = signal.SIGKILL
    account: Account | None = None
    cwd: Path = Path("/")
    restarts: bool = True
    longest_pause_seconds: float = LONGEST_PAUSE_SECONDS
    log: Path | None = None  # what it prints goes there, and is not passed on
    keeps: tuple[str, ...] = ()  # lines that begin so are kept for the start's last word
    kept: list[str] = field(default_factory=list, repr=False)
    process: Popen[bytes] | None = None
    started_at: float = 0
    restart_at: float | None = None
    early_deaths: int = 0
    unfinished_line: bytes = field(default=b"", repr=False)

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.returncode is None


class Supervisor:
    """Watches children, their output, and the signals to stop. One thread, one select()."""

    def __init__(self, output: IO[bytes]) -> None:
        self.children: list[Child] = []
        self.stop_requests = 0
        self._output = output
        self._selector = selectors.DefaultSelector()
        self._wake, wake = os.pipe()
        for descriptor in (self._wake, wake):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._selector.register(self._wake, selectors.EVENT_READ)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_stop_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake select()

    def _on_stop_signal(self, *_: object) -> None:
        self.stop_requests += 1

    def start(self, child: Child) -> None:
        """Run a child and keep it running."""
        self.children.append(child)
        self._spawn(child)

    def wait_until(self, check: Callable[[], bool]) -> bool:
        """Watch the children until `check` holds; return False if asked to stop before.

        Checks every 50 ms however much the children print: checking may make one of them log.
        """
        next_check = time.monotonic()
        while not self.stop_requests:
            if time.monotonic() >= next_check:
                if check():
                    return True
                next_check = time.monotonic() + 0.05
            self.tick(0.05)
        return False

    def watch(self) -> None:
        """Watch the children until asked to stop."""
        while not self.stop_requests:
            self.tick(TICK_SECONDS)

    def stop(self, *names: str) -> None:
        """Signal these children once and wait for all; kill those that outlast their grace period.

        A second Ctrl-C ends the grace period of those that yield.
        """
        stopping = [child for child in self.children if child.name in names]
        began = time.monotonic()
        for child in stopping:
            child.restarts, child.restart_at = False, None
            if child.process and child.is_alive:
                child.process.send_signal(child.stop_signal)
        while alive := [child for child in stopping if child.is_alive]:
            self.tick(0.1)
            hurried = self.stop_requests > 1
            for child in alive:
                grace = 0 if hurried and child.yields else child.grace_seconds
                if child.process and child.is_alive and time.monotonic() - began > grace:
                    self.say(f"{child.name} did not stop in time and was killed.")
                    kill_session(child.process)
                    child.process.wait()
        self.tick(0)  # their last words

    def say(self, text: str, name: str = "amber") -> None:
        for line in text.splitlines():
            self._print(name, line.encode())

    def tick(self, timeout_seconds: float) -> None:
        """Run one round: pass on output, notice deaths, restart what is due."""
        for key, _ in self._selector.select(timeout_seconds):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
            else:
                self._pass_on(key.data, key.fd)
        for child in self.children:
            if child.process and child.is_alive and child.process.poll() is not None:
                self._on_death(child, child.process)
            if child.restart_at is not None and time.monotonic() >= child.restart_at:
                self._spawn(child)

    def _spawn(self, child: Child) -> None:
        writer = self._open_log(child.log) if child.log else self._open_pipe(child)
        child.restart_at, child.started_at = None, time.monotonic()
        child.process = spawn(
            child.argv,
            env=child.env,
            account=child.account,
            orphaned=child.orphaned,
            output=writer,
            cwd=child.cwd,
        )
        os.close(writer)

    def _open_pipe(self, child: Child) -> int:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self._selector.register(reader, selectors.EVENT_READ, child)
        return writer

    def _open_log(self, log: Path) -> int:
        """Open the log at its end; a long one becomes `….1` first."""
        with contextlib.suppress(FileNotFoundError):
            if log.stat().st_size > LONG_LOG_BYTES:
                log.rename(f"{log}.1")
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _on_death(self, child: Child, process: Popen[bytes]) -> None:
        kill_session(process)  # a dead worker's own children must not go on
        if not child.restarts:
            return
        lived_seconds = time.monotonic() - child.started_at
        child.early_deaths = 0 if lived_seconds > SETTLED_SECONDS else child.early_deaths + 1
        pause = min(0.25 * 2**child.early_deaths, child.longest_pause_seconds)
        child.restart_at = time.monotonic() + (pause if child.early_deaths else 0)
        see = f" Its log: {child.log}" if child.log else ""
        self.say(f"{child.name} ended with status {process.returncode} and will be restarted.{see}")

    def _pass_on(self, child: Child, descriptor: int) -> None:
        """Print the complete lines of a child's output; at its end also the incomplete one."""
        try:
            said = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        *lines, child.unfinished_line = (child.unfinished_line + said).split(b"\n")
        if not said:
            self._selector.unregister(descriptor)
            os.close(descriptor)
            lines, child.unfinished_line = [child.unfinished_line], b""
        for line in filter(bytes.strip, lines):
            if child.keeps and (text := line.decode(errors="replace")).startswith(child.keeps):
                child.kept.append(text)
            else:
                self._print(child.name, line)

    def _print(self, name: str, line: bytes) -> None:
        with contextlib.suppress(OSError):  # nobody reads any more; the children go on
            self._output.write(f"{name:9} | ".encode() + line + b"\n")
            self._output.flush()
