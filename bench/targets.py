"""Define who can be asked: the provider, the bare proxy, Amber; all the same question.

Amber's chats are made here, outside of what is timed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bench import loadgen
from bench.stand import RunningAmber

AT_ONCE = 4
"""Chats made at the same time; more would only queue."""

SEALING_SECONDS = 6
"""An imported chat is sealed in the background at once: longer than five of 1,000 messages take."""


@dataclass(slots=True)
class Target:
    """Something to ask.

    `prepare(count)` gets ready for so many requests; `load` is loadgen's input.
    """

    name: str
    load: loadgen.Row
    prepare: Callable[[int], Awaitable[None]] = field(default=lambda _: asyncio.sleep(0))


def openai_target(name: str, base_url: str) -> Target:
    return Target(name, {"name": name, "url": f"{base_url}/chat/completions"})


def amber_target(amber: RunningAmber, *, stored: int = 0, name: str = "amber") -> Target:
    """Return a target that asks in chats which hold `stored` messages."""
    load: loadgen.Row = {
        "name": name,
        "url": amber.url,
        "driver": str(Path(__file__).with_name("amber_driver.py")),
        "headers": {"Authorization": f"Bearer {amber.api_key}", "Accept": "text/event-stream"},
        "body": {"role": "human", "content": "{prompt}"},
        "text": "text",
        "chats": [],
    }

    async def prepare(count: int) -> None:
        load["chats"] = await _new_chats(amber, count, stored)
        if stored:
            await asyncio.sleep(SEALING_SECONDS)

    return Target(name, load, prepare)


async def _new_chats(amber: RunningAmber, count: int, stored: int) -> list[str]:
    headers = {"Authorization": f"Bearer {amber.api_key}"}
    places = asyncio.Semaphore(AT_ONCE)
    async with aiohttp.ClientSession(f"{amber.url}/api/v1/", headers=headers) as session:

        async def call(method: str, path: str, body: Any = None) -> Any:
            async with session.request(method, path, json=body) as answer:
                answer.raise_for_status()
                return await answer.json()

        assistant_id = (await call("GET", "assistants/"))["results"][0]["id"]

        async def new_chat() -> str:
            async with places:
                if not stored:
                    made = await call("POST", "chats/", {"assistant_id": assistant_id})
                    return str(made["id"])
                given = {"assistant_id": assistant_id, "messages": _messages(stored)}
                made = await call("POST", "chats/import/?again=true", given)
                return str(made["chats"][0]["chat"]["id"])

        return await asyncio.gather(*(new_chat() for _ in range(count)))


def _messages(count: int) -> list[dict[str, str]]:
    """Return questions and answers of 200 characters, in turn."""
    roles = {"user": "human", "assistant": "assistant"}
    earlier = loadgen.history(count, "")[:-1]
    return [{"role": roles[m["role"]], "content": m["content"]} for m in earlier]
