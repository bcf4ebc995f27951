"""Run a process of little power, seen from the process that starts it.

It is started in a session of its own with an empty environment, talks in frames (`frames`), and is
killed with all it may have started. `verdict` says what its end means, for all who use one.

Never waits without a deadline, and never takes an answer of unbounded length.
"""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from libraries.parsing.frames import PREFIX_BYTES, Body, frame_head, lengths
from libraries.parsing.result import MAX_TEXT_CHARS, ParserLost, Unreadable

DAMAGED: Final = "The document is damaged or incomplete and cannot be read."
TOO_SLOW: Final = "The document takes too long to read. Split it up, or save it in a simpler form."
TOO_BIG: Final = "Reading the document needs more memory than a document may use. Split it up."
LOST: Final = "The process that read the document was stopped from outside."

_ROOT: Final = Path(__file__).resolve().parents[2]
_MAX_HEADER_BYTES: Final = 1_000_000
_MAX_BODY_BYTES: Final = 4 * MAX_TEXT_CHARS
_PIPE_BYTES: Final = 1_048_576
_EXIT_SECONDS: Final = 5.0
_CRASHES: Final = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE})
_OUT_OF_TIME: Final = frozenset({signal.SIGXCPU, signal.SIGALRM})


class ChildEnded(Exception):
    """The child closed its output."""


class ChildProcess:
    """One child process, used by one thread at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        self.documents = 0
        self.last_words = ""
        """The last line of its trace, once it has ended; empty if it left none."""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed in `end`)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=_ROOT,
            # The parent's environment holds addresses and keys: none of it may get in. Each further
            # arena of malloc would reserve 64 MB of the limited address space.
            env={"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "MALLOC_ARENA_MAX": "1"},
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input = self._process.stdin.fileno()
        self._output = self._process.stdout.fileno()
        for pipe in (self._input, self._output):
            os.set_blocking(pipe, False)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, header: dict[str, Any], body: Body, *, ends_at: float) -> tuple[Any, bytes]:
        """Send a frame and return the answer. Raises ChildEnded, TimeoutError."""
        self.documents += 1
        self.send(header, body.pieces(), body_bytes=body.size, ends_at=ends_at)
        return self.receive(ends_at=ends_at)

    def send(
        self, header: dict[str, Any], body: Iterable[bytes], *, body_bytes: int, ends_at: float
    ) -> None:
        """Send a frame whose body comes in parts. Raises ChildEnded, TimeoutError."""
        self._write(memoryview(frame_head(header, body_bytes)), ends_at)
        for part in body:
            self._write(memoryview(part), ends_at)

    def receive(self, *, ends_at: float) -> tuple[Any, bytes]:
        """Return the next frame. Raises ChildEnded, TimeoutError."""
        header_bytes, body_bytes = lengths(self._read(PREFIX_BYTES, ends_at))
        if header_bytes > _MAX_HEADER_BYTES or body_bytes > _MAX_BODY_BYTES:
            raise ChildEnded
        return json.loads(self._read(header_bytes, ends_at)), self._read(body_bytes, ends_at)

    def end(self, grace_seconds: float = 0.0) -> int:
        """Wait so long for the child, then kill it and its group. Returns its return code."""
        if self._process.returncode is not None and self._errors.closed:
            return self._process.returncode
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_seconds)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self.last_words = self._last_words()
        return code

    def _last_words(self) -> str:
        with self._errors as errors:
            errors.seek(0)
            lines = errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _write(self, data: memoryview, ends_at: float) -> None:
        while data:
            _await(self._input, select.POLLOUT, ends_at)
            try:
                data = data[os.write(self._input, data[:_PIPE_BYTES]) :]
            except BrokenPipeError:
                raise ChildEnded from None

    def _read(self, size: int, ends_at: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            _await(self._output, select.POLLIN, ends_at)
            piece = os.read(self._output, min(size - len(data), _PIPE_BYTES))
            if not piece:
                raise ChildEnded
            data += piece
        return bytes(data)


def _await(pipe: int, event: int, ends_at: float) -> None:
    """Wait for a pipe. Raises TimeoutError.

    With `poll`, since `select` has a highest descriptor.
    """
    poll = select.poll()
    poll.register(pipe, event)
    if not poll.poll(max(ends_at - time.monotonic(), 0.0) * 1_000):
        raise TimeoutError


def verdict(child: ChildProcess) -> Exception:
    """Return the error that the end of a child means for its document."""
    # The output is closed a moment before the return code can be read.
    code = child.end(grace_seconds=_EXIT_SECONDS)
    words = child.last_words
    if words.startswith(("MemoryError", "lxml.etree.XMLSyntaxError: Memory")):
        return Unreadable(TOO_BIG)
    if -code in _OUT_OF_TIME:
        return Unreadable(TOO_SLOW)
    if code > 0 or -code in _CRASHES:
        return Unreadable(DAMAGED)
    return ParserLost(LOST)  # also 0: it had waited for long, and ended just then
