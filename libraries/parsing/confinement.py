"""What a parser's process may not do. Called in the child, before it reads a byte of a document.

Enforced by the kernel: address space, CPU time, wall time, no file longer than its own complaints,
no core dump; no network at all where the kernel lets us make an empty network namespace (root, or
unprivileged user namespaces). Where it does not, and in any case, Python's audit hook refuses
sockets, new processes, writing to files and foreign functions: that stops what a parsing library
would do by mistake or by feature, not code that has broken into the process.

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
    """Of one document; the address space is the process's."""

    cpu_seconds: int = 20
    wall_seconds: int = 60
    address_space_bytes: int = 1_000_000_000


def confine(limits: ParserLimits) -> None:
    """For the rest of this process's life."""
    _limit(resource.RLIMIT_AS, limits.address_space_bytes)
    _limit(resource.RLIMIT_FSIZE, _MOST_STDERR_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    leave_network()
    sys.addaudithook(_refuse)


def allow_one_document(limits: ParserLimits) -> None:
    """Give the next document its CPU and wall time: SIGXCPU or SIGALRM ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    ends_at = int(used.ru_utime + used.ru_stime) + limits.cpu_seconds
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (ends_at, hard))
    # The parent kills at the wall time; this is for a parent that died.
    signal.alarm(limits.wall_seconds + 5)


def leave_network() -> bool:
    """Whether the process now is in a network namespace of its own, without an interface."""
    libc = ctypes.CDLL(None, use_errno=True)
    unshare = getattr(libc, "unshare", None)  # Linux only
    if unshare is None:
        return False
    return any(unshare(flags) == 0 for flags in (_CLONE_NEWNET, _CLONE_NEWUSER | _CLONE_NEWNET))


def _limit(what: int, value: int) -> None:
    """Never above what the process was given."""
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(what, (value, value))


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event.startswith(_REFUSED_EVENTS):
        raise PermissionError(f"A parser may not do this: {event}")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
        raise PermissionError("A parser may not write to files.")
