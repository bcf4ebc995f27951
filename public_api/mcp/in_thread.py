"""Run what reads the database in a thread, for tools that are called on the event loop.

It acts for the same tenant as the caller, and gives its connections back when it is done.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the work returns; raise what it raises."""
    return await sync_to_async(_work_and_release, thread_sensitive=False)(work, *args, **kwargs)


def _work_and_release(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return work(*args, **kwargs)
    finally:
        connections.close_all()
