"""Keep child processes that open documents, warm for the next one; the parent's side.

A child is started when none waits (0.1 s with its parsers), reads up to DOCUMENTS_PER_CHILD
documents, and ends by itself when it has waited for long. It is killed, with all it may have
started, when a document takes longer than it may. What a child's end means:

    it raised                          the document is damaged
    CPU time, wall time                the document takes too long
    out of memory                      the document is too big
    a crash in a parser's C code       the document is damaged
    killed by somebody else            ParserLost: not the document's fault

The parent never reads the document itself: bytes go in, text comes out, both of bounded length.
"""

import atexit
import json
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from libraries.parsing.child_process import TOO_SLOW, ChildEnded, ChildProcess, verdict
from libraries.parsing.confinement import ParserLimits
from libraries.parsing.frames import Body
from libraries.parsing.result import ParsedText, Unreadable

DOCUMENTS_PER_CHILD: Final = 200
MAX_CHILDREN: Final = 4
"""Limit of one process, each child of up to 1 GB; further callers wait."""
MAX_WAITING: Final = 2
"""Children kept warm: as many as an ingest worker reads documents at once; each 15 to 60 MB."""
MAX_RESIDENT_KILOBYTES: Final = 200_000
"""A child that once needed more is not kept: its memory would stay."""

_NORMAL_LIMITS: Final = ParserLimits()


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
        self._waiting: list[ChildProcess] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MAX_CHILDREN)

    def parse(self, content: bytes | Body, *, kind: str, **said: str) -> ParsedText:
        """Parse a document in a child, which gets `kind` and what is `said` of it.

        Raises Unreadable, ParserLost.
        """
        document = content if isinstance(content, Body) else Body(content)
        with self._places:
            child = self._take_child()
            try:
                reply, body = child.ask({"kind": kind, **said}, document, ends_at=self._ends_at())
            except TimeoutError:
                child.end()
                raise Unreadable(TOO_SLOW) from None
            except ChildEnded:
                raise verdict(child) from None
            # It may have read a part of this document, so that it is of no use for another.
            except BaseException:
                child.end()
                raise
            self._put_back(child, reply)
        return _parse_reply(reply, body)

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

    def _take_child(self) -> ChildProcess:
        """Take a live child, or start one: those that waited too long have ended by themselves."""
        while True:
            with self._lock:
                child = self._waiting.pop() if self._waiting else None
            if child is None:
                return ChildProcess(self._command)
            if child.is_alive:
                return child
            child.end()

    def _put_back(self, child: ChildProcess, reply: dict[str, Any]) -> None:
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


def _parse_reply(reply: dict[str, Any], body: bytes) -> ParsedText:
    if "unreadable" in reply:
        raise Unreadable(reply["unreadable"])
    return ParsedText(body.decode(), tuple(reply["pages"]), reply["mime_type"])


_pool = ChildPool()
atexit.register(_pool.close)


def parse_in_child(content: Body, *, kind: str, **said: str) -> ParsedText:
    """Parse a document as `ChildPool.parse` does, with this process's children."""
    return _pool.parse(content, kind=kind, **said)
