"""Measure a turn that calls a tool eight times in one reply, against one that calls it once.

The tool is a service of this process whose every call takes a second. If calls ran one after the
other, the ratio would be near eight.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import aiohttp
from aiohttp import web

from bench.loadgen import say
from bench.report import Finding, median
from bench.rest import call, new_chat, signed_in
from bench.stand import RunningAmber

CALL_SECONDS = 1.0
PARALLEL = 8
ROUNDS = 5
READ_SECONDS = 60


@dataclass(slots=True)
class Service:
    """A discovery service with one function, `wait`; counts the calls that ran at the same time."""

    url: str = ""
    running: int = 0
    most_at_once: int = 0

    async def manifest(self, _: web.Request) -> web.Response:
        function = {"name": "wait", "description": "Waits.", "parameters": {"type": "object"}}
        return web.json_response(
            {
                "name": "Waiting",
                "description": "Waits.",
                "callback_url": f"{self.url}/call",
                "functions": [function],
            }
        )

    async def call(self, _: web.Request) -> web.Response:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        await asyncio.sleep(CALL_SECONDS)
        self.running -= 1
        return web.json_response({"content": "waited"})


async def parallel_calls(amber: RunningAmber, *, is_quick: bool) -> list[Finding]:
    rounds = 1 if is_quick else ROUNDS
    seconds: dict[int, list[float]] = {1: [], PARALLEL: []}
    timeout = aiohttp.ClientTimeout(READ_SECONDS)
    async with _service() as service, signed_in(amber, timeout=timeout) as session:
        chat_id = await _chat_with(session, service)
        await _turn_seconds(session, chat_id, 1)
        for number in range(rounds):
            order = sorted(seconds, reverse=bool(number % 2))
            for calls in order:
                seconds[calls].append(await _turn_seconds(session, chat_id, calls))
    one, many = median(seconds[1]), median(seconds[PARALLEL])
    say(f"    1 call {one:.2f} s, {PARALLEL} calls {many:.2f} s")
    return [
        Finding(
            f"turn with {PARALLEL} tool calls of {CALL_SECONDS:g} s against one with 1",
            many / one,
            "x",
            at_most=1.25,
            note=f"{many:.2f} and {one:.2f} s; at most {service.most_at_once} calls at once",
            details={str(calls): each for calls, each in seconds.items()},
        )
    ]


@asynccontextmanager
async def _service() -> AsyncIterator[Service]:
    service = Service()
    app = web.Application()
    app.add_routes([web.get("/", service.manifest), web.post("/call", service.call)])
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield service
    finally:
        await runner.cleanup()


async def _chat_with(session: aiohttp.ClientSession, service: Service) -> str:
    """Make a chat whose assistant has the service's function."""
    post = partial(call, session, "POST")
    tool = await post("tools/", {"kind": "discovery", "discovery_url": service.url})
    # Its answers are a stranger's words, after which calls would wait for a person.
    made = {"name": "Waits", "model": "auto", "untrusted_calls": "allow"}
    assistant = await post("assistants/", made)
    await post(f"assistants/{assistant['id']}/tools/", {"tool_id": tool["id"]})
    return await new_chat(session, assistant["id"])


async def _turn_seconds(session: aiohttp.ClientSession, chat_id: str, calls: int) -> float:
    """Return the time from the question to the end of a turn with so many calls of a second
    each."""
    question = f"Wait. [[fake call=wait times={calls} tokens=3]]"
    began = time.monotonic()
    headers = {"Accept": "text/event-stream"}
    path = f"chats/{chat_id}/messages/"
    async with session.post(path, json={"content": question}, headers=headers) as answer:
        said = await answer.text()
    took = time.monotonic() - began
    finished = said.count("event: tool.finished\n")
    if finished != calls or "event: turn.completed\n" not in said:
        raise RuntimeError(f"{finished} of {calls} calls finished: {said[-500:]}")
    return took
