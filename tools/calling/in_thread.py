"""Run a tool's blocking code beside the event loop and give back its database connections."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the function returns, or raise what it raises."""

    def run() -> T:
        try:
            return function(*args, **kwargs)
        finally:
            # Connections belong to a thread; this one would keep its own until it ends.
            connections.close_all()

    return await asyncio.to_thread(run)
