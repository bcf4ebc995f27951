"""Copies of a process that has loaded Amber: the workers of a platform, and what its operator does.

What a new process costs is more than a second of imports; a copy costs what it does itself. Both
sides are here: `Loaded` and `Copy` are the test's, `main` that of the process. A copy's parent
waits for it and tells how it ended; when the test's process ends, so do all.
"""

import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

import django

from amber.lib.workers import garbage
from amber.processes import tied_to_parent
from amber.worker import ROLE_VARIABLE
from engine.provider import client

ROOT = Path(__file__).resolve().parents[3]
Tie = Callable[[], None] | None


class Copy(subprocess.Popen[bytes]):
    """A running copy. `told` says its pid, and later its exit status."""

    def __init__(self, arguments: Sequence[str], told: socket.socket) -> None:
        self.args, self.told = arguments, told
        self.returncode: Any = None
        self.pid = int(told.recv(100))

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.told.settimeout(timeout)
            try:
                told = self.told.recv(100)
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self.told.close()
            self.returncode = int(told or -signal.SIGKILL)  # who would tell was killed, and it, too
        return int(self.returncode)


class Loaded:
    """A process that waits to be copied, with this environment."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.channel, other = _channel()
        with other:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.kit.copies", str(other.fileno())],
                cwd=ROOT,
                env=environ,
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
            )

    def start(self, arguments: Sequence[str], *streams: IO[bytes]) -> Copy:
        """Run `manage.py …` or `-m module …` in a copy with these streams: input, output, errors."""
        told, other = _channel()
        with other:
            handed = [other.fileno(), *(stream.fileno() for stream in streams)]
            socket.send_fds(self.channel, [json.dumps(list(arguments)).encode()], handed)
        return Copy(arguments, told)

    def run(self, *arguments: str, typed: str = "") -> str:
        """Run it to its end, given this input; what it printed."""
        with ExitStack() as files:
            given, printed, complained = (
                files.enter_context(tempfile.TemporaryFile()) for _ in range(3)
            )
            given.write(typed.encode())
            given.seek(0)
            status = self.start(arguments, given, printed, complained).wait()
            for file in (printed, complained):
                file.seek(0)
            assert status == 0, complained.read().decode()[-3_000:] or status
            return printed.read().decode()

    def close(self) -> None:
        self.channel.close()
        self.process.wait()


def _channel() -> tuple[socket.socket, socket.socket]:
    """Two ends; each message arrives as it was sent, and with the last holder of an end it is over."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def main(descriptor: int) -> None:
    """Start the copies that are asked for, until nobody asks any more."""
    garbage.put_off()
    is_worker = os.environ.get(ROLE_VARIABLE) == "worker"
    _load_worker() if is_worker else django.setup()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    with socket.socket(fileno=descriptor) as channel:
        while (asked := socket.recv_fds(channel, 65_536, 4))[0]:
            tie = tied_to_parent(signal.SIGKILL)
            if os.fork() == 0:
                channel.close()
                _attend(json.loads(asked[0]), *asked[1], tie=tie, is_short=not is_worker)
            for each in asked[1]:
                os.close(each)


def _load_worker() -> None:
    """Import what a worker imports before it consumes, and what turns need."""
    for name in ("celery.apps.worker", "celery.concurrency.thread", "celery.worker.consumer"):
        import_module(name)
    import_module("amber.celery").app.loader.import_default_modules()
    import_module("chats.running.runner")
    client.preload()


def _attend(arguments: list[str], told: int, *streams: int, tie: Tie, is_short: bool) -> NoReturn:
    """Have a copy, tell its pid and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if tie:
        tie()
    tie = tied_to_parent(signal.SIGKILL)
    with socket.socket(fileno=told) as telling:
        if (pid := os.fork()) == 0:
            telling.close()
            os.setsid()
            if tie:
                tie()
            _become(arguments, streams, is_short=is_short)
        telling.send(str(pid).encode())
        for each in streams:
            os.close(each)
        telling.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _become(arguments: list[str], streams: Sequence[int], *, is_short: bool) -> NoReturn:
    """Be this command, with these streams."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    _run(*arguments)
    if is_short:  # to take apart all that was imported would cost more than most commands
        sys.stdout.flush()
        os._exit(0)
    sys.exit()


def _run(first: str, *others: str) -> None:
    """Run a script or a module; raises SystemExit if it failed."""
    try:
        if first == "-m":
            sys.argv = list(others)
            runpy.run_module(others[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = [first, *others]
            runpy.run_path(first, run_name="__main__")
    except SystemExit as ended:
        if ended.code:
            raise


if __name__ == "__main__":
    main(int(sys.argv[1]))
