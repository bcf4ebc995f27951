"""Notice, by one daemon thread per process, when a thread holds the interpreter for seconds.

While C code holds the interpreter (`re` over a hostile text, say), no other thread runs: no turn
goes on, no request is answered. Such a time is reported twice. While it lasts, a signal handler of
`faulthandler`'s, which needs no interpreter, writes all stacks to standard error; once it is over,
one warning names the thread that used the time, with its stack, and `held_count` grows.

The signal comes by processor time and not by the clock: stacks can be written only while nobody
changes them. Of a process that wakes up after a pause all threads run, and writing theirs crashed it.
Whoever looks into a process that hangs without using any sends the signal: `kill -PROF`.

A process that was suspended, or a machine too busy to run it, is not taken for one: then the
process has used next to no processor time. Ends nothing, and interrupts nobody.
"""

import faulthandler
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

logger = structlog.get_logger(__name__)

TICK_SECONDS = 1.0
LATE_SECONDS = 2.0
"""A tick that is later than this is reported. Pauses of the garbage collector and of pages with
many rows stay below half a second."""
LEAST_HELD_SECONDS = 1.0
"""The processor time that one thread must have used meanwhile. With less the process was not
running: threads that share the interpreter let the watch in after milliseconds each."""
STACKS_CPU_SECONDS = 10.0
"""Stacks are written after so much processor time without a tick: more than threads that compute beside
the interpreter, as numpy's may, use between two."""
MOST_STACK_CHARS = 8_000


@dataclass(slots=True)
class _WatchState:
    held_count: int = 0
    thread: threading.Thread | None = field(default=None)


_state = _WatchState()


def start() -> None:
    """Watch this process. Call it again in a forked child: threads are not inherited."""
    if _state.thread is None or not _state.thread.is_alive():
        if sys.__stderr__ is not None:
            faulthandler.register(signal.SIGPROF, file=sys.__stderr__)
        _state.thread = threading.Thread(target=_watch, name="interpreter-watch", daemon=True)
        _state.thread.start()


def held_count() -> int:
    """Return how many times the interpreter was held for too long since the process began."""
    return _state.held_count


def _watch() -> None:
    while True:
        _tick()


def _tick() -> None:
    """Sleep for a tick, and report if it ends late. Costs 0.2 ms."""
    if sys.__stderr__ is not None:  # else nobody handles the signal, which would end the process
        # Arming it anew disarms what the last tick armed, so it fires only where none comes.
        signal.setitimer(signal.ITIMER_PROF, STACKS_CPU_SECONDS)
    before = _seconds_by_thread()
    due_at = time.monotonic() + TICK_SECONDS
    time.sleep(TICK_SECONDS)
    late_seconds = time.monotonic() - due_at
    if late_seconds > LATE_SECONDS:
        _log_hold(late_seconds, before)


def _log_hold(late_seconds: float, before: Mapping[int, float]) -> None:
    used = {
        ident: seconds - before.get(ident, 0.0) for ident, seconds in _seconds_by_thread().items()
    }
    ident = max(used, key=lambda each: used[each])
    times = {"seconds": round(late_seconds, 1), "cpu_seconds": round(used[ident], 1)}
    if used[ident] < LEAST_HELD_SECONDS:
        logger.info("process_was_not_running", **times)
        return
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    # The holder lets go where its call of C code returns, so its frame is still that call's.
    frame = sys._current_frames().get(ident)
    logger.warning(
        "interpreter_held",
        **times,
        thread=names.get(ident, str(ident)),
        held_stack="".join(traceback.format_stack(frame))[-MOST_STACK_CHARS:] if frame else "",
    )
    _state.held_count += 1


def _seconds_by_thread() -> dict[int, float]:
    """Return the CPU time of each thread so far; a microsecond each."""
    seconds = {}
    for thread in threading.enumerate():
        if thread.ident is not None and thread.is_alive():
            try:
                seconds[thread.ident] = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
            except OSError:  # it ended meanwhile
                continue
    return seconds
