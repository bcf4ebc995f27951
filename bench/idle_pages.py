"""Measure what pages cost that only wait for changes (`GET /api/v1/events/`), and what polling would.

Idle pages are connections of one process, so their memory and CPU are the web process's alone.
"""

import asyncio
import time
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import psutil

from bench.loadgen import say
from bench.report import Finding
from bench.rest import call, signed_in
from bench.stand import RunningAmber, Stand, cpu_seconds, memory

PAGES: Final = 1_000
IDLE_SECONDS: Final = 60.0
POLLS: Final = 400
TOLD: Final = 30


def idle_pages(place: Stand, provider_url: str, *, is_quick: bool) -> list[Finding]:
    with place.amber(provider_url) as amber:
        return asyncio.run(_idle_pages(amber, is_quick))


async def _idle_pages(amber: RunningAmber, is_quick: bool) -> list[Finding]:
    """Open the pages one after the other, wait, tell them of changes, and poll instead."""
    count, seconds = (20, 5.0) if is_quick else (PAGES, IDLE_SECONDS)
    web = amber.processes()["web"][0]
    async with signed_in(amber) as client:
        await _poll(client, 20)  # what is loaded at the first request is nobody's cost
        before_mb = memory(web).rss
        pages = [await _open(amber) for _ in range(count)]
        held_mb = memory(web).rss - before_mb
        redis_connections = _connections_to_redis(amber, web)
        say(f"  {count} pages are open")
        used = cpu_seconds(web)
        await asyncio.sleep(seconds)
        idle_cpu = (cpu_seconds(web) - used) / seconds
        late_ms = [await _change(client, pages[-1][0]) for _ in range(3 if is_quick else TOLD)]
        for _, writer in pages:
            writer.close()
        await asyncio.sleep(1)
        used = cpu_seconds(web)
        await _poll(client, POLLS)
        poll_ms = (cpu_seconds(web) - used) / POLLS * 1_000
    return [
        Finding("memory of an idle page", held_mb * 1024 / count, "kB"),
        Finding(f"CPU of {count} idle pages", idle_cpu * 100, "% of a core"),
        Finding("Redis connections of the web process with them", redis_connections, ""),
        Finding(f"a change told to all {count}", sorted(late_ms)[len(late_ms) // 2], "ms"),
        Finding(
            "CPU of one poll of the list of chats",
            poll_ms,
            "ms",
            note=f"{count} pages polling every 5 s: {count / 5 * poll_ms / 10:.0f}% of a core",
        ),
    ]


async def _open(amber: RunningAmber) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a page, and wait until it is told that it will hear of changes."""
    place = urlsplit(amber.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    asked = f"GET /api/v1/events/ HTTP/1.1\r\nHost: {place.netloc}\r\n"
    writer.write(f"{asked}Authorization: Bearer {amber.api_key}\r\n\r\n".encode())
    await writer.drain()
    await _read_until(reader, b'"ready"')
    return reader, writer


async def _change(client: aiohttp.ClientSession, last: asyncio.StreamReader) -> float:
    """Make a chat; return the milliseconds until the last page was told of it."""
    began = time.monotonic()
    made = await call(client, "POST", "chats/", {})
    await _read_until(last, made["id"].encode())
    return (time.monotonic() - began) * 1_000


async def _read_until(reader: asyncio.StreamReader, wanted: bytes) -> None:
    async with asyncio.timeout(30):
        while wanted not in await reader.readline():
            pass


async def _poll(client: aiohttp.ClientSession, times: int) -> None:
    for _ in range(times):
        await call(client, "GET", "chats/?limit=30")


def _connections_to_redis(amber: RunningAmber, web: psutil.Process) -> int:
    redis = [each for each in amber.servers() if "redis" in each.name()]
    ends = {c.laddr for each in redis for c in each.net_connections("inet")}
    return sum(c.raddr in ends for c in web.net_connections("inet"))
