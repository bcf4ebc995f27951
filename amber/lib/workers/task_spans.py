"""Trace the tasks of a worker: a span for each, in the trace of whoever enqueued it.

The task `chats.run_turn` has none: its message only says that some turn waits. Each attempt at a turn is a span
in the trace of its question (`chats.turns.attempt_spans`).
"""

from contextlib import AbstractContextManager
from typing import Any, Final

from celery.signals import task_postrun, task_prerun

from amber.lib.tracing import names, spans
from amber.lib.workers.queue import TRACE_HEADER

_OF_ROWS: Final = frozenset({"chats.run_turn"})

_running: dict[str, AbstractContextManager[Any]] = {}


def trace_tasks() -> None:
    """Trace the tasks that begin from now on."""
    task_prerun.connect(_begin)
    task_postrun.connect(_end)


def _begin(task_id: str, task: Any, **_: Any) -> None:
    if task.name in _OF_ROWS:
        return
    about = {names.MESSAGING_SYSTEM: "celery", names.MESSAGING_OPERATION: "process"}
    name = names.PROCESS.format(task=task.name)
    parent = (task.request.headers or {}).get(TRACE_HEADER)
    block = _running[task_id] = spans.enter(spans.Beginning(name, "consumer", parent, about))
    block.__enter__()


def _end(task_id: str, **_: Any) -> None:
    if block := _running.pop(task_id, None):
        block.__exit__(None, None, None)
