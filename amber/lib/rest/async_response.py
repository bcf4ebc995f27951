"""Answer on the web process's event loop, not in one of its threads.

A view returns `DeferredResponse(make)` and is done: its thread and its database connections are
free. `make` is an async function of no arguments that returns the answer, a stream perhaps, or
raises what views raise; nothing was sent before it returns, so the status is its to choose. Headers
that middleware has put on the DeferredResponse go along. If the client goes away, `make` gets a
CancelledError, or else what it streams; it has begun by then, so that it can clean up.

`amber.web.single_thread_handler` awaits it; other handlers answer with an empty 202.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog
from django.core.handlers.exception import convert_exception_to_response
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from redis.exceptions import RedisError

from amber.lib.errors import AmberError
from amber.lib.rest.api import as_amber_error, error_response

logger = structlog.get_logger(__name__)

Make = Callable[[], Awaitable[HttpResponseBase]]

_OF_THE_BODY: Final = frozenset({"content-length", "content-type"})


class DeferredResponse(HttpResponse):
    """An answer that is still to be made. `make` reads the database only in threads of its own."""

    def __init__(self, make: Make) -> None:
        super().__init__(status=202)
        self._make = make

    async def arrival(self, request: HttpRequest) -> HttpResponseBase:
        """Return the answer itself. An unexpected error is logged and answered as `internal`."""
        answered: Any = convert_exception_to_response(self._answer)
        made: HttpResponseBase = await answered(request)
        if isinstance(made, HttpResponse):
            made.headers.setdefault("Content-Length", str(len(made.content)))
        for name, value in self.items():
            if name.lower() not in _OF_THE_BODY:
                made.headers.setdefault(name, value)
        return made

    async def give_up(self) -> None:
        """Cancel `make`, instead of `arrival`, for a client that has gone before."""
        begun = asyncio.ensure_future(self._make())
        await asyncio.sleep(0)  # what is cancelled before it begins never runs a line
        begun.cancel()
        await asyncio.wait([begun])
        if not begun.cancelled() and (error := begun.exception()):
            logger.warning("answer_not_given_up", exc_info=error)

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        try:
            return await self._make()
        except (AmberError, OperationalError, InterfaceError, RedisError) as error:
            return error_response(as_amber_error(error), request)
