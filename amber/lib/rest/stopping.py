"""Stop the web process so that no request fails: it drains, then the server stops, then streams close.

On SIGTERM the process is not ready for AMBER_DRAIN_SECONDS, while it answers all requests and closes each
connection after its answer. Then uvicorn closes its socket and waits AMBER_SHUTDOWN_GRACE_SECONDS for answers that
cannot be resumed; streams that can be end at once (`amber.lib.rest.drain`). A second signal, or Ctrl-C, skips what
is left of the drain. The last spans of traces are sent once the server has stopped.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import structlog
from django.conf import settings

from amber.lib.rest.drain import drain
from amber.lib.tracing.start import stop_tracing

logger = structlog.get_logger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

CLOSED_SECONDS: Final = 0.5
"""By then the server has closed its socket: it looks every 0.1 s whether to. A viewer whose stream ended before
could come back here."""


def drain_on_stop(application: Application) -> Application:
    """Wrap the application: it handles the server's signals, and closes connections once it drains."""

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif drain.is_draining:
            await application(scope, receive, _closing(send))
        else:
            await application(scope, receive, send)

    return answer


async def _live(receive: Receive, send: Send) -> None:
    """Take over the signals once the server has started; it has set its own before."""
    await receive()
    loop = asyncio.get_running_loop()
    for number, drains in ((signal.SIGTERM, True), (signal.SIGINT, False)):
        _take_over(loop, number, drains=drains)
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await asyncio.to_thread(stop_tracing)
    await send({"type": "lifespan.shutdown.complete"})


def _take_over(loop: asyncio.AbstractEventLoop, number: signal.Signals, *, drains: bool) -> None:
    server: Any = signal.getsignal(number)

    def stop() -> None:
        server(number, None)
        loop.call_later(CLOSED_SECONDS, drain.close_streams)

    def on_signal(*_: object) -> None:
        loop.call_soon_threadsafe(_stop_in_order, loop, stop, drains)

    signal.signal(number, on_signal)


def _stop_in_order(loop: asyncio.AbstractEventLoop, stop: Callable[[], None], drains: bool) -> None:
    """Drain, then stop; whoever asks again does not want to wait."""
    if drains and settings.AMBER_DRAIN_SECONDS and not drain.is_draining:
        logger.info("draining", seconds=settings.AMBER_DRAIN_SECONDS)
        loop.call_later(settings.AMBER_DRAIN_SECONDS, stop)
        drain.begin()
    else:
        drain.begin()
        stop()


def _closing(send: Send) -> Send:
    """Return a `send` whose answers end their connection: the next request finds another process."""

    async def send_closing(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"connection", b"close")]
        await send(message)

    return send_closing
