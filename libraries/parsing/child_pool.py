"""Child processes that open documents, kept warm for the next one; the parent's side.

A child is started when none waits (0.1 s with its parsers), reads up to DOCUMENTS_PER_CHILD
documents, and ends by itself when it has waited for long. It is killed, with all it may have
started, when a document takes longer than it may. What a child's end means:

    it raised                          the document is damaged
    CPU time, wall time                the document takes too long
    want of memory                     the document is too big
    a crash in a parser's C code       the document is damaged
    killed by somebody else            ParserLost: not the document's fault

Refuses to read the document itself: bytes go in, text comes out, both of bounded length.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

from libraries.parsing.confinement import ParserLimits
from libraries.parsing.frames import PREFIX_BYTES, frame, lengths
from libraries.parsing.result import MAX_TEXT_CHARS, ParsedText, ParserLost, Unreadable

DOCUMENTS_PER_CHILD: Final = 200
MAX_CHILDREN: Final = 4
"""At once in one process, each of up to 1 GB; further callers wait."""
MAX_WAITING: Final = 1
"""Kept warm; one holds 25 to 60 MB."""
MAX_RESIDENT_KILOBYTES: Final = 200_000
"""A child that once needed more is not kept: its memory would stay."""

DAMAGED: Final = "The document is damaged or incomplete and cannot be read."
TOO_SLOW: Final = "The document takes too long to read. Split it up, or save it in a simpler form."
TOO_BIG: Final = "The document needs more memory to be read than a document may have. Split it up."
LOST: Final = "The process that read the document was ended from outside."

_ROOT: Final = Path(__file__).resolve().parents[2]
_MAX_HEADER_BYTES: Final = 1_000_000
_MAX_BODY_BYTES: Final = 4 * MAX_TEXT_CHARS
_PIPE_BYTES: Final = 1_048_576
_EXIT_SECONDS: Final = 5.0
_NORMAL_LIMITS: Final = ParserLimits()
_CRASHES: Final = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE})
_OUT_OF_TIME: Final = frozenset({signal.SIGXCPU, signal.SIGALRM})


class _Ended(Exception):
    """The child closed its output."""


class _Child:
    """One process. Used by one thread at a time."""

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
            # Nothing of ours: addresses and keys are in there.
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

    def ask(self, header: dict[str, Any], body: bytes, *, ends_at: float) -> tuple[Any, bytes]:
        """Raises _Ended, TimeoutError."""
        self.documents += 1
        for part in frame(header, body):
            self._write(memoryview(part), ends_at)
        header_bytes, body_bytes = lengths(self._read(PREFIX_BYTES, ends_at))
        if header_bytes > _MAX_HEADER_BYTES or body_bytes > _MAX_BODY_BYTES:
            raise _Ended
        return json.loads(self._read(header_bytes, ends_at)), self._read(body_bytes, ends_at)

    def end(self, grace_seconds: float = 0.0) -> int:
        """Kill it and its group, if it lives longer than that; its return code."""
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
                raise _Ended from None

    def _read(self, size: int, ends_at: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            _await(self._output, select.POLLIN, ends_at)
            piece = os.read(self._output, min(size - len(data), _PIPE_BYTES))
            if not piece:
                raise _Ended
            data += piece
        return bytes(data)


def _await(pipe: int, event: int, ends_at: float) -> None:
    """Raises TimeoutError. `poll` and not `select`: it has no highest descriptor."""
    poll = select.poll()
    poll.register(pipe, event)
    if not poll.poll(max(ends_at - time.monotonic(), 0.0) * 1_000):
        raise TimeoutError


class ChildPool:
    """Warm children, for all threads of a process. `command` is another program, for tests."""

    def __init__(
        self, limits: ParserLimits = _NORMAL_LIMITS, command: Sequence[str] | None = None
    ) -> None:
        self._limits = limits
        # -s: no packages of the user's; the working directory makes our own importable.
        self._command = command or [
            *(sys.executable, "-s", "-W", "ignore", "-m", "libraries.parsing.child"),
            json.dumps(asdict(limits)),
        ]
        self._waiting: list[_Child] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MAX_CHILDREN)

    def parse(self, content: bytes, *, kind: str) -> ParsedText:
        """`kind` is what the child is told. Raises Unreadable, ParserLost."""
        with self._places:
            child = self._taken()
            try:
                reply, body = child.ask({"kind": kind}, content, ends_at=self._ends_at())
            except TimeoutError:
                child.end()
                raise Unreadable(TOO_SLOW) from None
            except _Ended:
                raise _verdict(child) from None
            except BaseException:
                child.end()
                raise
            self._put_back(child, reply)
        return _parsed(reply, body)

    def close(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for child in waiting:
            child.end()

    def waiting_pids(self) -> list[int]:
        with self._lock:
            return [child.pid for child in self._waiting]

    def _ends_at(self) -> float:
        return time.monotonic() + self._limits.wall_seconds

    def _taken(self) -> _Child:
        """One that lives: those that waited too long have ended by themselves."""
        while True:
            with self._lock:
                child = self._waiting.pop() if self._waiting else None
            if child is None:
                return _Child(self._command)
            if child.is_alive:
                return child
            child.end()

    def _put_back(self, child: _Child, reply: dict[str, Any]) -> None:
        is_spent = (
            reply["is_last"]
            or reply["peak_kilobytes"] > MAX_RESIDENT_KILOBYTES
            or child.documents >= DOCUMENTS_PER_CHILD
        )
        with self._lock:
            is_kept = not is_spent and len(self._waiting) < MAX_WAITING
            if is_kept:
                self._waiting.append(child)
        if not is_kept:
            child.end()


def _parsed(reply: dict[str, Any], body: bytes) -> ParsedText:
    if "unreadable" in reply:
        raise Unreadable(reply["unreadable"])
    return ParsedText(body.decode(), tuple(reply["pages"]), reply["mime_type"])


def _verdict(child: _Child) -> Exception:
    """What the end of a child says about its document."""
    # Its output is closed before its code is there.
    code = child.end(grace_seconds=_EXIT_SECONDS)
    words = child.last_words
    if words.startswith(("MemoryError", "lxml.etree.XMLSyntaxError: Memory")):
        return Unreadable(TOO_BIG)
    if -code in _OUT_OF_TIME:
        return Unreadable(TOO_SLOW)
    if code > 0 or -code in _CRASHES:
        return Unreadable(DAMAGED)
    return ParserLost(LOST)


_pool = ChildPool()
atexit.register(_pool.close)


def parse_in_child(content: bytes, *, kind: str) -> ParsedText:
    """As `ChildPool.parse`, with the process's children."""
    return _pool.parse(content, kind=kind)
