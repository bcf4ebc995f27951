"""Reading what an SSE response of the test client says, and what a turn's Redis stream holds."""

import asyncio
from typing import Any

import orjson

from amber.lib import redis as amber_redis
from chats.models import Turn
from chats.stream import events_key

Sse = tuple[int, str, dict[str, Any]]
"""Number, name and data of one event."""

READ_SECONDS = 30


def read_sse(response: Any) -> list[Sse]:
    """All events until the stream ends. Heartbeats are left out."""

    async def read() -> bytes:
        try:
            async with asyncio.timeout(READ_SECONDS):
                return b"".join([part async for part in response.streaming_content])
        finally:
            await amber_redis.close_async_clients()

    blocks = asyncio.run(read()).decode().split("\n\n")
    return [_parsed(block) for block in blocks if block and not block.startswith(":")]


def _parsed(block: str) -> Sse:
    fields = dict(line.split(": ", 1) for line in block.split("\n"))
    return int(fields["id"]), fields["event"], orjson.loads(fields["data"])


def stream_of(turn: Turn) -> list[dict[str, Any]]:
    """The data of every event the turn's stream holds, oldest first."""
    entries: Any = amber_redis.client().xrange(events_key(turn.organization_id, turn.pk))
    return [orjson.loads(fields[b"d"]) for _, fields in entries]
