"""Start and stop child processes so that none outlives its parent or gets Ctrl-C twice.

Each child leads its own session: a Ctrl-C in the terminal reaches the parent only, which then
signals every child exactly once. It refuses to know what the children are.
On Linux the kernel signals a child when its parent dies, however it dies
(https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html); elsewhere the next start
has to clean up.
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
Account = tuple[int, int]
"""(uid, gid) of the user a child becomes."""


def name_process(what: str) -> None:
    """Name this process's Postgres sessions for `pg_stat_activity`: what it is, and where.

    libpq reads the variable.
    """
    os.environ["PGAPPNAME"] = f"amber {what} {socket.gethostname()[:24]}:{os.getpid()}"[:63]


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    account: Account | None = None,
    orphaned: signal.Signals = signal.SIGKILL,
    output: IO[bytes] | int | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own, stdout and stderr both going to `output`.

    `account` is the child's user; `orphaned` is the signal it gets when this process dies.
    Must be called from the main thread: Linux ties `orphaned` to the thread that forked.
    """
    uid, gid = account or (None, None)
    return subprocess.Popen(
        argv,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output is not None else None,
        start_new_session=True,
        user=uid,
        group=gid,
        extra_groups=[] if account else None,
        preexec_fn=tied_to_parent(orphaned),  # runs after the change of user, which would undo it
    )


def tied_to_parent(orphaned: signal.Signals) -> Callable[[], None] | None:
    """Return what a child of this process runs so that the kernel sends it `orphaned` when this
    one dies; None where no kernel does."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, int(orphaned), 0, 0, 0)
        if os.getppid() != parent:  # it died in between
            os._exit(1)

    return tie


def stop(
    process: subprocess.Popen[bytes], *, how: signal.Signals, grace_seconds: float
) -> int | None:
    """Signal `process` once, wait, and kill its whole session if the grace runs out."""
    if process.poll() is None:
        process.send_signal(how)
    try:
        return process.wait(grace_seconds)
    except subprocess.TimeoutExpired:
        kill_session(process)
        return process.wait()


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill the child and everything it started, also when the child itself is dead."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def wait_until(check: Callable[[], bool], *, timeout_seconds: float) -> bool:
    """Poll `check` every 20 ms; return False when the time is over."""
    deadline = time.monotonic() + timeout_seconds
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
