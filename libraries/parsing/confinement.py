"""Confine a parser's process, called in the child before it reads a byte of a document.

The kernel enforces limits of address space, CPU time and wall time, no file longer than the trace
of an error, no core dump, and no network at all where it lets us make an empty network namespace
(root, or unprivileged user namespaces). In any case Python's audit hook refuses sockets, new
processes, writing to files and foreign functions: that stops what a parsing library would do by
mistake or by feature, not code that has broken into the process.

Not enforced: which files may be read. The environment is empty, so secrets given in it are not
there.
"""

import ctypes
import os
import resource
import signal
import sys
from dataclasses import dataclass
from typing import Any, Final

_CLONE_NEWUSER: Final = 0x1000_0000
_CLONE_NEWNET: Final = 0x4000_0000
_MOST_STDERR_BYTES: Final = 65_536
_REFUSED_EVENTS: Final = (
    "socket.",
    "subprocess.",
    "ctypes.",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "os.kill",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.chown",
    "shutil.",
)
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """Limits of one document; the address space is the process's."""

    cpu_seconds: int = 20
    wall_seconds: int = 60
    address_space_bytes: int = 1_000_000_000


def confine(limits: ParserLimits) -> None:
    """Confine this process for the rest of its life."""
    _limit(resource.RLIMIT_AS, limits.address_space_bytes)
    _limit(resource.RLIMIT_FSIZE, _MOST_STDERR_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    leave_network()
    sys.addaudithook(_refuse)  # last: it refuses ctypes, too


def allow_one_document(limits: ParserLimits) -> None:
    """Give the next document its CPU and wall time: SIGXCPU or SIGALRM ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    # It counts from the process's start. The hard limit stays, or the next document would get none.
    ends_at = int(used.ru_utime + used.ru_stime) + limits.cpu_seconds
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (ends_at, hard))
    # The parent kills at the wall time; this is for a parent that died.
    signal.alarm(limits.wall_seconds + 5)


def leave_network() -> bool:
    """Move into a network namespace without an interface. Returns whether the kernel allowed it."""
    libc = ctypes.CDLL(None, use_errno=True)
    unshare = getattr(libc, "unshare", None)  # Linux only
    if unshare is None:
        return False
    # Root may without a namespace of users; others only in one.
    return any(unshare(flags) == 0 for flags in (_CLONE_NEWNET, _CLONE_NEWUSER | _CLONE_NEWNET))


def _limit(what: int, value: int) -> None:
    """Lower a limit, never above what the process was given."""
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(what, (value, value))


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event.startswith(_REFUSED_EVENTS):
        raise PermissionError(f"A parser may not do this: {event}")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
        raise PermissionError("A parser may not write to files.")
