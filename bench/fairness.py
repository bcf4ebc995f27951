"""Measure what a thousand questions of one organization do to another's first token.

Rounds alternate: the quiet organization asks one question after the other, alone and then while the loud one's
thousand, asked all at once, wait and run. Only questions that were asked and begun while others waited count. The
ratio is of medians; tests/e2e/test_take_turns.py counts what begins in between, on any machine.
"""

import asyncio
import os
import time
from typing import Any, Final

import aiohttp

from bench.loadgen import say
from bench.report import Finding, median
from bench.rest import call, first_assistant, new_chat, signed_in
from bench.stand import RunningAmber, Stand, new_key

MANY: Final = 1_000
ROUNDS: Final = 3
ALONE: Final = 12
"""Questions of a round without others."""
PAUSE_SECONDS: Final = 0.3
TOKENS: Final = 50
PACE: Final = "ttft=500 itl=20"
"""As a hosted model of middle size answers."""
POSTS_AT_ONCE: Final = 100
WITHOUT_LIMITS: Final = {
    "AMBER_QUEUE_SECONDS": "0",
    "AMBER_RATE_KEY": "0",
    "AMBER_RATE_USER": "0",
    "AMBER_WEB_PROCESSES": "1",
    "AMBER_CHAT_WORKERS": "1",
}


def fairness(place: Stand, provider_url: str, *, is_quick: bool) -> list[Finding]:
    with place.amber(provider_url, **WITHOUT_LIMITS) as amber:
        environ = os.environ | {"AMBER_VAR_DIR": str(place.folder / "var")} | place.remembered()
        quiet_key = new_key("quiet@example.com", "Quiet", environ)
        return asyncio.run(_fairness(amber, quiet_key, is_quick))


async def _fairness(amber: RunningAmber, quiet_key: str, is_quick: bool) -> list[Finding]:
    many, rounds = (200, 1) if is_quick else (MANY, ROUNDS)
    alone: list[float] = []
    beside: list[float] = []
    limits = aiohttp.TCPConnector(limit=POSTS_AT_ONCE)
    async with signed_in(amber, connector=limits) as loud, signed_in(amber, quiet_key) as quiet:
        for each in (loud, quiet):
            await call(each, "POST", "assistants/", {"name": "Q", "model": "fake-model"})
        await _ask_alone(quiet, 3)  # what is loaded at the first request is nobody's cost
        for number in range(rounds):
            alone += await _ask_alone(quiet, 3 if is_quick else ALONE)
            chats = [await _new_chat(loud) for _ in range(many)]
            found = await _ask_beside(loud, quiet, chats)
            beside += found
            say(f"  round {number + 1}: {_shown(alone)} ms alone, {_shown(beside)} beside {many}")
    return [
        Finding(
            f"first token beside {many} questions of another organization",
            median(beside) / median(alone),
            "x",
            at_most=1.2,
            note=f"{_shown(alone)} ms alone, {_shown(beside)} beside ({len(beside)} questions)",
            details={"alone_ms": alone, "beside_ms": beside, "load_average": os.getloadavg()},
        )
    ]


def _shown(seen: list[float]) -> str:
    return f"{median(seen):.0f}"


async def _new_chat(client: aiohttp.ClientSession) -> str:
    return await new_chat(client, await first_assistant(client))


async def _ask(client: aiohttp.ClientSession, chat_id: str) -> Any:
    body = {"content": f"Tell me. [[fake tokens={TOKENS} {PACE}]]"}
    return (await call(client, "POST", f"chats/{chat_id}/messages/", body))["turn"]


async def _ask_alone(quiet: aiohttp.ClientSession, times: int) -> list[float]:
    return [await _first_token_ms(quiet) for _ in range(times)]


async def _first_token_ms(client: aiohttp.ClientSession) -> float:
    """Ask in a chat of its own, and read its stream up to the first words."""
    chat_id = await _new_chat(client)
    await asyncio.sleep(PAUSE_SECONDS)
    began = time.monotonic()
    body = {"content": f"Tell me. [[fake tokens={TOKENS} {PACE}]]"}
    asked = client.post(
        f"chats/{chat_id}/messages/", json=body, headers={"Accept": "text/event-stream"}
    )
    async with asked as stream:
        async for line in stream.content:
            if line == b"event: text.delta\n":
                return (time.monotonic() - began) * 1_000
    raise RuntimeError("An answer without words")


async def _ask_beside(
    loud: aiohttp.ClientSession, quiet: aiohttp.ClientSession, chats: list[str]
) -> list[float]:
    """Return the first tokens of questions that were asked while others waited, and then wait for the rest."""
    asking = asyncio.gather(*(_ask(loud, chat_id) for chat_id in chats))
    seen: list[float] = []
    await asyncio.sleep(PAUSE_SECONDS)
    while True:
        took = await _first_token_ms(quiet)
        if asking.done() and not await _is_waiting(loud, asking.result()):
            break
        seen.append(took)
    for turn in asking.result():
        await _wait_for_end(loud, turn)
    await asyncio.sleep(3)  # what digests chats, and ends streams
    return seen


async def _wait_for_end(client: aiohttp.ClientSession, turn: Any) -> None:
    while True:
        if (await _turn(client, turn))["ended_at"]:
            return
        await asyncio.sleep(PAUSE_SECONDS)


async def _turn(client: aiohttp.ClientSession, turn: Any) -> Any:
    return await call(client, "GET", f"turns/{turn['id']}/")


async def _is_waiting(loud: aiohttp.ClientSession, turns: list[Any]) -> bool:
    """Whether the last of them still waits: they are one person's, so it is the last that begins."""
    last = max(turns, key=lambda turn: turn["created_at"])
    return bool((await _turn(loud, last))["status"] == "queued")
