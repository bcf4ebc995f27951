"""A TCP link to a server that can be cut, or left half-open, as networks and firewalls do it.

Bytes pass through this process, between a free port of 127.0.0.1 and the server. It changes none.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
Address = str | tuple[str, int]
"""A Unix socket's path, or host and port."""


class Link:
    """Open from the start until `close`. All methods return when their effect has begun."""

    def __init__(self, target: Address) -> None:
        self.port = 0
        self._target = target
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="link", daemon=True)
        self._thread.start()
        self.restore()

    def cut(self) -> None:
        """Close all connections and refuse new ones."""
        self._run(self._cut())

    def restore(self) -> None:
        """Accept connections, on the same port as ever."""
        self._run(self._listen())

    def freeze(self) -> int:
        """Pass on nothing more of the connections there are, and do not close them; returns how
        many. New ones work."""
        return self._run(self._freeze())

    def close(self) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
        await asyncio.gather(*(connection.end() for connection in set(self._connections)))

    async def _freeze(self) -> int:
        for connection in self._connections:
            connection.is_frozen = True
        return len(self._connections)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await _connect(self._target)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection((reader, writer), there)
        self._connections.add(connection)
        try:
            await connection.ended
        finally:
            self._connections.discard(connection)


Side = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _connect(target: Address) -> Side:
    if isinstance(target, str):
        return await asyncio.open_unix_connection(target)
    return await asyncio.open_connection(*target)


class _Connection:
    """Two sockets and what goes between them; it ends when either side does."""

    def __init__(self, here: Side, there: Side) -> None:
        self.is_frozen = False
        self._writers = (here[1], there[1])
        self.ended = asyncio.gather(
            self._pump(here[0], there[1]), self._pump(there[0], here[1], is_answer=True)
        )

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_answer: bool = False
    ) -> None:
        try:
            while data := await reader.read(65_536):
                if not self.is_frozen:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass  # a reset is an end as any other
        if not (self.is_frozen and is_answer):  # the server's end is not told either
            self._abort()

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def end(self) -> None:
        self._abort()
        await asyncio.wait([self.ended])
