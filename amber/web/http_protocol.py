"""Speak HTTP/1.1 as uvicorn does, but bound what a client sends before its request counts for anything.

uvicorn keeps a request's head in memory however long it is, and waits for its end without a limit: one
client could fill the memory, and a thousand could hold every connection. So can trailers behind a body.
It waits as long for a body. A proxy in front may be stricter. The size of bodies has its own limit
(`amber.web.body_limit`). An answer may take any time.
"""

from asyncio import TimerHandle, Transport
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_HEAD_BYTES: Final = 65_536
"""Of a request's line and headers: twice what nginx passes on. Read in pieces, so a piece more may come."""

HEAD_SECONDS: Final = 60
"""From the connection, or from the first byte of a later head, to the head's end; as nginx has it."""

BODY_SECONDS: Final = 60
BODY_BYTES: Final = 16_384
"""So much of a body must come in this time, unless it ends: 273 bytes a second, where Kestrel asks for 240. A
bound on silence alone would let a byte a minute hold the connection for ever."""

_TOO_LONG: Final = f"The head of the request is longer than {MAX_HEAD_BYTES:,} bytes."


class BoundedHttpProtocol(HttpToolsProtocol):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unused_bytes = 0
        self._is_in_body = False
        self._body_bytes = 0
        self._deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless too much came that neither ended a head nor was part of a body."""
        self._unused_bytes += len(data)
        super().data_received(data)
        if self._unused_bytes > MAX_HEAD_BYTES:
            self._refuse()
        elif (self._unused_bytes or self._is_in_body) and self._deadline is None:
            self._begin_deadline()

    def on_headers_complete(self) -> None:
        self._begin_part(is_body=True)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unused_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes >= BODY_BYTES:
            self._begin_part(is_body=True)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._begin_part(is_body=False)
        super().on_message_complete()

    def _begin_part(self, *, is_body: bool) -> None:
        """Measure anew: what comes next is a piece of a body, or the head of a later request."""
        self._is_in_body = is_body
        self._unused_bytes = self._body_bytes = 0
        self._end_deadline()

    def _refuse(self) -> None:
        """Say why, unless an answer to an earlier request is on its way here."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            self.send_400_response(_TOO_LONG)
        else:
            self.transport.close()

    def _begin_deadline(self) -> None:
        seconds = BODY_SECONDS if self._is_in_body else HEAD_SECONDS
        self._deadline = self.loop.call_later(seconds, self._close_late)

    def _close_late(self) -> None:
        """Close the connection, unless it is Amber that does not read: it answers an earlier request."""
        if self.flow.read_paused:
            self._begin_deadline()
        else:
            self.transport.close()

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
