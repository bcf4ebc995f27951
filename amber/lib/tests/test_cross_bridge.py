import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from amber.lib.workers.thread_bridge import RunInThread, run_on_loop, worker_loop


def test_the_coroutine_waits_on_the_loop_and_its_callables_run_on_the_callers_thread():
    async def start(run_in_thread: RunInThread) -> list[Any]:
        assert asyncio.get_running_loop() is worker_loop()
        return [threading.get_ident(), await run_in_thread(threading.get_ident)]

    on_loop, on_task = run_on_loop(start)
    assert on_task == threading.get_ident()
    assert on_loop != on_task


def test_callables_run_one_after_the_other_in_the_order_they_were_handed():
    done: list[int] = []

    async def start(run_in_thread: RunInThread) -> None:
        def note(number: int) -> Callable[[], None]:
            return lambda: done.append(number)

        await asyncio.gather(*(run_in_thread(note(number)) for number in range(20)))

    run_on_loop(start)
    assert done == list(range(20))


def test_what_a_callable_raises_reaches_the_coroutine():
    async def start(run_in_thread: RunInThread) -> str:
        with pytest.raises(ZeroDivisionError):
            await run_in_thread(lambda: 1 / 0)
        return await run_in_thread(lambda: "and on")

    assert run_on_loop(start) == "and on"


def test_what_the_coroutine_raises_reaches_the_caller():
    async def start(run_in_thread: RunInThread) -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run_on_loop(start)


def test_a_cancelled_coroutine_still_learns_what_was_committed():
    """The callable that runs is not interrupted, and its end is waited for."""
    runs, may_end = threading.Event(), threading.Event()
    committed: list[str] = []

    def commit() -> None:
        runs.set()
        assert may_end.wait(10)
        committed.append("row")

    async def start(run_in_thread: RunInThread) -> list[str]:
        try:
            await run_in_thread(commit)
        except asyncio.CancelledError:
            return list(committed)
        return []

    tasks: list[asyncio.Task[Any]] = []

    def cancel_then_let_go() -> None:
        assert runs.wait(10)
        worker_loop().call_soon_threadsafe(tasks[0].cancel)
        worker_loop().call_soon_threadsafe(may_end.set)

    helper = threading.Thread(target=cancel_then_let_go)
    helper.start()
    assert run_on_loop(start, on_task=tasks.append) == ["row"]
    helper.join()


def test_a_failure_does_not_swallow_the_cancelling():
    tasks: list[asyncio.Task[Any]] = []
    runs, may_end = threading.Event(), threading.Event()

    def fail() -> None:
        runs.set()
        assert may_end.wait(10)
        raise LookupError

    async def start(run_in_thread: RunInThread) -> str:
        try:
            await run_in_thread(fail)
        except LookupError:
            return "lives on"
        except asyncio.CancelledError as cancelled:
            return repr(cancelled.__cause__)
        return "nothing"

    def cancel_then_let_go() -> None:
        assert runs.wait(10)
        worker_loop().call_soon_threadsafe(tasks[0].cancel)
        worker_loop().call_soon_threadsafe(may_end.set)

    helper = threading.Thread(target=cancel_then_let_go)
    helper.start()
    assert run_on_loop(start, on_task=tasks.append) == "LookupError()"
    helper.join()


def test_many_bridges_share_the_loop_and_each_keeps_its_thread():
    """Eight coroutines that all have to be there at once: none waits for another's thread."""
    together: list[asyncio.Barrier] = []
    idents: dict[int, set[int]] = {}

    async def make() -> None:
        together.append(asyncio.Barrier(8))

    asyncio.run_coroutine_threadsafe(make(), worker_loop()).result(10)

    def run(number: int) -> None:
        async def start(run_in_thread: RunInThread) -> None:
            first = await run_in_thread(threading.get_ident)
            await together[0].wait()
            idents[number] = {first, await run_in_thread(threading.get_ident)}

        run_on_loop(start)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(len(own) for own in idents.values()) == [1] * 8
    assert len(set.union(*idents.values())) == 8


@pytest.mark.django_db(transaction=True)
def test_holds_a_database_connection_only_while_a_callable_runs():
    def query() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return int(cursor.fetchone()[0])

    async def start(run_in_thread: RunInThread) -> list[object]:
        return [await run_in_thread(query), connection_was_closed()]

    def connection_was_closed() -> bool:
        return held[-1].connection is None

    held = [connection._connections[connection._alias]]  # type: ignore[attr-defined]
    assert run_on_loop(start) == [1, True]


def test_a_coroutine_that_is_cancelled_at_once_has_begun():
    """Otherwise whatever it was to clean up stays."""

    async def start(run_in_thread: RunInThread) -> str:
        try:
            return await run_in_thread(lambda: "not cancelled")
        except asyncio.CancelledError:
            return "cleaned up"

    def cancel(task: asyncio.Task[str]) -> None:
        task.cancel()

    assert run_on_loop(start, on_task=cancel) == "cleaned up"
