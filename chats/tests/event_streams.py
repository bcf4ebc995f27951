"""Read an SSE response of the test client, and a turn's Redis stream; run what follows streams."""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any

import orjson

from amber.lib import redis as amber_redis
from chats.events.stream import events_key
from chats.models import Turn

Sse = tuple[int, str, dict[str, Any]]
"""Number, name and data of one event."""

READ_SECONDS = 30
"""Far more than it takes; without a limit of its own each wait would be for ever."""


def read_sse(response: Any) -> list[Sse]:
    """Return all events until the stream ends, without heartbeats."""
    return _events_of(read_parts(response))


def read_first(response: Any, count: int) -> list[Sse]:
    """Read so many parts of a stream that stays open; heartbeats count, but are left out."""
    return _events_of(read_parts(response, count))


def read_parts(response: Any, count: int = 0) -> bytes:
    """Return the first parts of a stream, or all of it."""

    async def read() -> bytes:
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(READ_SECONDS), aclosing(response.streaming_content) as sent:
                async for part in sent:
                    parts.append(part)
                    if len(parts) == count:
                        break
            return b"".join(parts)
        finally:
            await amber_redis.close_async_clients()

    return asyncio.run(read())


def _events_of(sent: bytes) -> list[Sse]:
    blocks = sent.decode().split("\n\n")
    return [_parsed(block) for block in blocks if block and not block.startswith(":")]


def _parsed(block: str) -> Sse:
    fields = dict(line.split(": ", 1) for line in block.split("\n"))
    return int(fields["id"]), fields["event"], orjson.loads(fields["data"])


def stream_of(turn: Turn) -> list[dict[str, Any]]:
    """Return the data of every event in the turn's stream, oldest first."""
    entries: Any = amber_redis.client().xrange(events_key(turn.organization_id, turn.pk))
    return [orjson.loads(fields[b"d"]) for _, fields in entries]


def run_on_new_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run what follows streams within the limit, and leave nothing behind."""

    async def limited() -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                await work
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await amber_redis.close_async_clients()

    asyncio.run(limited())
