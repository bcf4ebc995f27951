"""Bridge a task's thread and the process's event loop: coroutines wait, threads write.

A worker process has one uvloop in a thread of its own. A task's thread starts a coroutine there
and then runs the functions that the coroutine sends back (`await run_in_thread(fn)`), one by one.
So no ORM call runs on the loop, each task has one writer, and a database connection is held only
while a callable runs.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from django.db import connections

T = TypeVar("T")

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}


class RunInThread(Protocol):
    """Runs `fn()` on the task's thread and returns its result: `await run_in_thread(fn)`.

    Cancelling the awaiting coroutine lets `fn` finish first, so that what it committed is known.
    The cancelling then goes on, also when `fn` failed (its error is the cause): a coroutine that
    tolerates such failures must not survive its cancelling.
    """

    def __call__(self, fn: Callable[[], T]) -> Awaitable[T]: ...


def worker_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of this process, started on first use."""
    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            import uvloop  # 1 MB, which a worker without coroutines does not pay

            loop = _loops[os.getpid()] = uvloop.new_event_loop()
            threading.Thread(target=loop.run_forever, name="worker-loop", daemon=True).start()
        return loop


def run_on_loop(
    start: Callable[[RunInThread], Awaitable[T]],
    *,
    on_task: Callable[[asyncio.Task[T]], None] = lambda _: None,
) -> T:
    """Run `start(run_in_thread)` on the worker's loop, and run its functions here until it ends.

    `on_task` gets the task (on the loop's thread) once it has begun, so that it can be cancelled.
    """
    return _Bridge[T](worker_loop()).run(start, on_task)


def outcome_of(fn: Callable[[], T]) -> "Future[T]":
    """Return what `fn()` returned or raised, run here and now.

    For the first piece of work of a coroutine that is still to start, and would send it back at
    once. The connection stays this thread's.
    """
    outcome: Future[T] = Future()
    try:
        outcome.set_result(fn())
    except BaseException as exc:  # noqa: BLE001  (handed on: the coroutine decides)
        outcome.set_exception(exc)
    return outcome


class _Bridge(Generic[T]):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = (
            SimpleQueue()
        )

    def run(
        self,
        start: Callable[[RunInThread], Awaitable[T]],
        on_task: Callable[[asyncio.Task[T]], None],
    ) -> T:
        done = asyncio.run_coroutine_threadsafe(self._watch(start, on_task), self._loop)
        while (job := self._jobs.get()) is not None:
            self._run_job(*job)
        return done.result()

    async def _watch(
        self,
        start: Callable[[RunInThread], Awaitable[T]],
        on_task: Callable[[asyncio.Task[T]], None],
    ) -> T:
        try:
            task = asyncio.ensure_future(start(self._run_in_thread))
            await asyncio.sleep(0)  # what is cancelled before it begins never runs a line
            on_task(task)
            return await task
        finally:
            self._jobs.put(None)

    async def _run_in_thread(self, fn: Callable[[], Any]) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put((fn, future))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError as cancelled:
            await asyncio.wait([future])
            raise cancelled from future.exception()

    def _run_job(self, fn: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        try:
            result = fn()
        except BaseException as exc:  # noqa: BLE001  (passed on: the coroutine decides)
            self._loop.call_soon_threadsafe(future.set_exception, exc)
        else:
            self._loop.call_soon_threadsafe(future.set_result, result)
        finally:
            # To the pool: the coroutine may wait for a provider before it sends the next.
            connections.close_all()
