"""Define who can be asked: the provider, the bare proxy, Amber; all the same question.

Amber's chats are made here, outside of what is timed.
"""

import asyncio
from typing import Any

from bench.loadgen import Row, Target
from bench.rest import call, first_assistant, new_chat, signed_in
from bench.stand import RunningAmber, vacuum

AT_ONCE = 4
"""Chats made at the same time; more would only queue."""

IDLE_SHARE = 0.1
"""An imported chat is sealed in the background at once, which takes most of a core. Idle, Amber and its databases need
some 3% of one."""

IDLE_SECONDS = 3
"""For so long in a row: a worker may wait a second for its next chat."""

IDLE_WITHIN_SECONDS = 120

_FILLER = "earlier talk about rivers, stones and the slow record of rain; " * 4


def openai_target(name: str, base_url: str) -> Target:
    def request(question: str) -> tuple[str, Row]:
        messages = [{"role": "user", "content": question}]
        body = {"model": "fake-model", "messages": messages, "stream": True}
        return f"{base_url}/chat/completions", body

    def text(event: Row) -> str | None:
        choices: Any = event.get("choices")
        return choices[0].get("delta", {}).get("content") if choices else None

    return Target(name, request, text)


def amber_target(amber: RunningAmber, *, stored: int = 0, name: str = "amber") -> Target:
    """Return a target that asks each question in a chat of its own, which holds `stored` messages."""
    chats: list[str] = []

    def request(question: str) -> tuple[str, Row]:
        url = f"{amber.url}/api/v1/chats/{chats.pop()}/messages/"
        return url, {"role": "human", "content": question}

    async def prepare(count: int) -> None:
        chats[:] = await _new_chats(amber, count, stored)
        if stored:
            await _until_idle(amber)
            vacuum("chats_chat", "chats_chatmessage", "chats_messageblock", url=amber.database_url)

    headers = {"Authorization": f"Bearer {amber.api_key}", "Accept": "text/event-stream"}
    return Target(name, request, lambda event: event.get("text"), headers, prepare)


async def _until_idle(amber: RunningAmber) -> None:
    """Wait until what it does in the background is done. Raises TimeoutError."""

    def used() -> float:
        return sum(amber.cpu_seconds().values()) + amber.database_cpu_seconds()

    async with asyncio.timeout(IDLE_WITHIN_SECONDS):
        idle_seconds = 0
        while idle_seconds < IDLE_SECONDS:
            before = used()
            await asyncio.sleep(1)
            idle_seconds = idle_seconds + 1 if used() - before < IDLE_SHARE else 0


async def _new_chats(amber: RunningAmber, count: int, stored: int) -> list[str]:
    places = asyncio.Semaphore(AT_ONCE)
    async with signed_in(amber) as session:
        assistant_id = await first_assistant(session)

        async def make() -> str:
            async with places:
                if not stored:
                    return await new_chat(session, assistant_id)
                given = {"assistant_id": assistant_id, "messages": _messages(stored)}
                made = await call(session, "POST", "chats/import/?again=true", given)
                return str(made["chats"][0]["chat"]["id"])

        return await asyncio.gather(*(make() for _ in range(count)))


def _messages(count: int) -> list[dict[str, str]]:
    """Return questions and answers of 200 characters, in turn."""
    return [
        {"role": "assistant" if n % 2 else "human", "content": f"{n}: {_FILLER}"[:200]}
        for n in range(count)
    ]
