"""Measure what one turn and one viewer cost: `python -m bench.scale.unit_costs`.

Rows, WAL and Redis' keys are counted around a number of turns in new chats, each an answer of 100 tokens
without tools; memory and CPU around viewers of one long answer. docs/capacity.md multiplies them.
"""

import asyncio
import time
from typing import Any, Final

import aiohttp
import psycopg
import redis

from bench.cells import interleave
from bench.loadgen import Load, Target, say
from bench.rest import call, first_assistant, new_chat, signed_in
from bench.stand import RunningAmber, Stand, cpu_seconds, memory, stand
from bench.targets import amber_target

TURNS: Final = Load(concurrent=8, tokens=100, per_worker=25, rounds=1)
WARM: Final = Load(concurrent=8, tokens=20, per_worker=3, rounds=1)
MANY: Final = Load(concurrent=64, tokens=100, per_worker=1, rounds=1)
VIEWERS: Final = 300
VIEWED_SECONDS: Final = 10.0
LIMITS: Final = {f"AMBER_STREAMS_PER_{whose}": "2000" for whose in ("USER", "KEY", "ORGANIZATION")}
_SIZES_SQL: Final = """
SELECT relname, pg_total_relation_size(oid), pg_indexes_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


def main() -> None:
    with (
        stand() as place,
        place.provider() as provider_url,
        place.amber(provider_url, **LIMITS) as amber,
    ):
        for name, value in asyncio.run(_measure(place, amber)).items():
            say(f"{name:64} {value:12,.1f}")


async def _measure(place: Stand, amber: RunningAmber) -> dict[str, float]:
    target = amber_target(amber)
    await interleave([target], WARM)
    found = await _turns(place, amber, target)
    found |= await _many(amber, target)
    return found | await _viewers(amber)


# -- Turns -----------------------------------------------------------------------------------------


async def _turns(place: Stand, amber: RunningAmber, target: Target) -> dict[str, float]:
    turns = TURNS.concurrent * (TURNS.per_worker + 1)  # one each to warm up
    server = redis.Redis.from_url(place.remembered()["REDIS_URL"])
    before, used = _stored(place), amber.cpu_seconds()
    databases = amber.database_cpu_seconds()
    held = int(server.info("memory")["used_memory"])
    await interleave([target], TURNS)
    after, spent = _stored(place), amber.cpu_seconds()
    found = {f"bytes a turn: {name}": (after[name] - before[name]) / turns for name in before}
    found = {name: value for name, value in found.items() if value > 1}
    found |= {f"CPU ms a turn: {role}": (spent[role] - used[role]) / turns * 1e3 for role in used}
    found["CPU ms a turn: databases"] = (amber.database_cpu_seconds() - databases) / turns * 1e3
    found["Redis bytes a turn, of all"] = (int(server.info("memory")["used_memory"]) - held) / turns
    return found | _redis_keys(server)


def _stored(place: Stand) -> dict[str, float]:
    """Return the bytes of each table, of all tables' indexes, and of the WAL so far."""
    with psycopg.connect(place.database_url(), autocommit=True) as connection:
        connection.execute("VACUUM")  # maps and statistics that come once are not a turn's
        rows = connection.execute(_SIZES_SQL).fetchall()
        wal = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert wal is not None
    return {
        **{name: float(size) for name, size, _ in rows},
        "all tables": float(sum(size for _, size, _ in rows)),
        "their indexes": float(sum(size for *_, size in rows)),
        "WAL": float(wal[0]),
    }


def _redis_keys(server: "redis.Redis") -> dict[str, float]:
    """Return the mean size of the keys of each kind, and how many there are."""
    sizes: dict[str, list[int]] = {}
    for key in server.scan_iter(count=1_000):
        kind = key.decode().split(":")[1] if b":" in key else key.decode()
        sizes.setdefault(kind, []).append(server.memory_usage(key) or 0)
    return {
        f"Redis: bytes of each of {len(some)} keys {kind}": sum(some) / len(some)
        for kind, some in sizes.items()
    }


async def _many(amber: RunningAmber, target: Target) -> dict[str, float]:
    """Return the memory that more turns at once need, over that of eight."""
    before = _megabytes(amber)
    peak = dict(before)
    running = asyncio.create_task(interleave([target], MANY))
    while not running.done():
        await asyncio.sleep(0.2)
        peak = {role: max(peak[role], mb) for role, mb in _megabytes(amber).items()}
    await running
    more = MANY.concurrent - TURNS.concurrent
    return {
        f"memory of one more turn at once, kB: {role}": (peak[role] - before[role]) / more * 1024
        for role in ("web", "chat")
    }


def _megabytes(amber: RunningAmber) -> dict[str, float]:
    found = amber.memory()
    return {role: found[role].rss for role in ("web", "chat")}


# -- Viewers ---------------------------------------------------------------------------------------


async def _viewers(amber: RunningAmber) -> dict[str, float]:
    """Open viewers of one answer of 50 tokens a second; return what one more costs the web process."""
    web = amber.processes()["web"][0]
    connector = aiohttp.TCPConnector(limit=0)
    async with signed_in(amber, connector=connector) as client:
        path = await _long_turn(client)
        alone = await _cpu_of(web)
        before = memory(web).rss
        viewers = [asyncio.create_task(_view(client, path)) for _ in range(VIEWERS)]
        await asyncio.sleep(5)
        watched = await _cpu_of(web)
        held = memory(web).rss - before
        for viewer in viewers:
            viewer.cancel()
        await asyncio.gather(*viewers, return_exceptions=True)
    return {
        "memory of one more viewer, kB: web": held / VIEWERS * 1024,
        "CPU of one more viewer, ms a second: web": (watched - alone) / VIEWERS * 1e3,
    }


async def _long_turn(client: aiohttp.ClientSession) -> str:
    chat_id = await new_chat(client, await first_assistant(client))
    asked = {"role": "human", "content": "[[fake tokens=4000 ttft=100 itl=20]] Tell me more."}
    posted = await call(client, "POST", f"chats/{chat_id}/messages/", asked)
    return f"turns/{posted['turn']['id']}/events/"


async def _view(client: aiohttp.ClientSession, path: str) -> None:
    async with client.get(path, headers={"Accept": "text/event-stream"}) as answer:
        async for _ in answer.content.iter_any():
            pass


async def _cpu_of(process: Any) -> float:
    """Return the share of a core that it uses for VIEWED_SECONDS."""
    used, began = cpu_seconds(process), time.monotonic()
    await asyncio.sleep(VIEWED_SECONDS)
    return (cpu_seconds(process) - used) / (time.monotonic() - began)


if __name__ == "__main__":
    main()
