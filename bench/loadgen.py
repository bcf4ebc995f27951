"""Ask a target many questions at the same time, and time the tokens of the answers.

A closed loop: each of `concurrent` workers sends its next question when its last was answered. Questions
carry the marks of tests/fakes/provider.py, which set the provider's pace and make the text of each
token the time at which it was sent. So it is known of each question when the provider got it, and of
each token how long it took back: all processes are on this machine, with one CLOCK_MONOTONIC.

A question has failed if its status is not 200, if it broke off or timed out, and if fewer than all of
its tokens arrived (`short`).
"""

import asyncio
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import aiohttp
import numpy as np
import orjson

STAMP: Final = re.compile(r"([#@])(\d+);")
"""`#`: the provider got the question, `@`: it sent a token; microseconds."""
FIRST_TOKEN_MS: Final = 150.0
TOKEN_MS: Final = 20.0
"""The pace of the provider, a common model's: first token, then 50 tokens a second."""
LIMIT_SECONDS: Final = 120
"""Of one answer; after so many no worker asks again."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Load:
    """The load of one cell."""

    concurrent: int
    tokens: int
    per_worker: int
    rounds: int
    is_burst: bool = False
    """Whether all begin at once, instead of one after the other over the time of one answer."""
    warm_up: int = 1
    """How many questions each worker asks before: Postgres plans a statement anew the first ten times."""

    def question(self, number: int) -> str:
        pace = f"tokens={self.tokens} ttft={FIRST_TOKEN_MS} itl={TOKEN_MS} stamp=1"
        return (
            f"Question {number}-{random.randrange(1 << 30)}: what moved the stone? [[fake {pace}]]"
        )


@dataclass(slots=True)
class Target:
    """Something to ask. `prepare(count)` gets ready for so many questions."""

    name: str
    request: Callable[[str], tuple[str, Row]]
    """Returns the address and the body for a question."""
    text: Callable[[Row], str | None]
    """Returns the text in an event of the answer's stream."""
    headers: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[int], Awaitable[None]] = field(default=lambda _: asyncio.sleep(0))


class Result:
    """One question: fed with the answer's text as it arrives. Times are microseconds."""

    def __init__(self) -> None:
        self.start = _now_us()
        self.why, self.tokens = "", 0
        self.ttft: int | None = None
        self.total: int | None = None
        self.way_in: int | None = None
        self.way_out: list[int] = []
        self._tail = ""

    @property
    def ok(self) -> bool:
        return not self.why

    def add(self, text: str, at: int) -> None:
        tail, used = self._tail + text, 0  # a peer may cut a stamp in two
        for stamp in STAMP.finditer(tail):
            used = stamp.end()
            if stamp[1] == "@":
                self.ttft = self.ttft or at - self.start
                self.tokens += 1
                self.way_out.append(at - int(stamp[2]))
            elif self.way_in is None:
                self.way_in = int(stamp[2]) - self.start
        self._tail = tail[used:]

    def end(self, tokens: int) -> None:
        self.total = _now_us() - self.start
        if self.tokens < tokens:
            self.why = self.why or f"short: {self.tokens} of {tokens}"


def _now_us() -> int:
    return time.monotonic_ns() // 1000


async def cell(target: Target, load: Load) -> tuple[Row, list[Result]]:
    """Put one load on one target: the numbers, and what they are made from."""
    connector = aiohttp.TCPConnector(limit=0, force_close=False, keepalive_timeout=120)
    timeout = aiohttp.ClientTimeout(total=LIMIT_SECONDS)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        own_before, started = time.process_time(), time.monotonic()
        results = await _ask_all(session, target, load)
        wall, own = time.monotonic() - started, time.process_time() - own_before
    row = {
        "target": target.name,
        "concurrent": load.concurrent,
        "tokens_per_answer": load.tokens,
        **_numbers_of(results),
        "wall_s": round(wall, 2),
        "req_per_s": round(sum(each.ok for each in results) / wall, 2),
        "tok_per_s": round(sum(each.tokens for each in results) / wall, 1),
        "loadgen_cpu_share": round(own / wall, 2),
    }
    return row, results


async def _ask_all(session: aiohttp.ClientSession, target: Target, load: Load) -> list[Result]:
    answer_seconds = (FIRST_TOKEN_MS + TOKEN_MS * (load.tokens - 1)) / 1e3
    numbers = count()
    results: list[Result] = []
    deadline = time.monotonic() + LIMIT_SECONDS

    async def work(place: int) -> None:
        if not load.is_burst:  # so that workers are not in step
            await asyncio.sleep(answer_seconds * place / load.concurrent)
        for _ in range(load.per_worker):
            if time.monotonic() > deadline:
                return
            question = load.question(next(numbers))
            results.append(await _ask(session, target, question, load.tokens))

    await asyncio.gather(*map(work, range(load.concurrent)))
    return results


async def _ask(
    session: aiohttp.ClientSession, target: Target, question: str, tokens: int
) -> Result:
    """POST a question, and read the events of its answer."""
    url, body = target.request(question)
    headers = {"Content-Type": "application/json", **target.headers}
    result = Result()
    try:
        async with session.post(url, data=orjson.dumps(body), headers=headers) as answer:
            if answer.status == 200:
                await _read_events(answer, target, result)
                result.end(tokens)
            else:
                result.why = f"http {answer.status}: {(await answer.text())[:160]}"
    except TimeoutError:
        result.why = "timeout"
    except (aiohttp.ClientError, ConnectionError, orjson.JSONDecodeError) as exc:
        result.why = f"{type(exc).__name__}: {exc}"[:160]
    return result


async def _read_events(answer: aiohttp.ClientResponse, target: Target, result: Result) -> None:
    buffer = b""
    async for chunk in answer.content.iter_any():
        at = _now_us()
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            data = line.removeprefix(b"data:").strip()
            if not line.startswith(b"data:") or not data.startswith(b"{"):
                continue
            event = orjson.loads(data)
            if event.get("error") and not event.get("choices"):
                result.why = f"error event: {data[:160]!r}"
            if text := target.text(event):
                result.add(text, at)


def _numbers_of(results: Sequence[Result]) -> Row:
    """Return counts, failures and times, in milliseconds."""
    good = [each for each in results if each.ok]
    times = {
        "ttft": [each.ttft for each in good if each.ttft is not None],
        "total": [each.total for each in good if each.total is not None],
        "in": [each.way_in for each in good if each.way_in is not None],
        "out_first": [each.way_out[0] for each in good if each.way_out],
        "out": [way for each in good for way in each.way_out],
    }
    return {
        "requests": len(results),
        "errors": len(results) - len(good),
        "error_kinds": dict(Counter(each.why for each in results if each.why).most_common(4)),
        **{f"{name}_p{q}": _percentile_ms(us, q) for name, us in times.items() for q in (50, 95)},
    }


def _percentile_ms(values_us: Sequence[int], percent: int) -> float | None:
    return round(float(np.percentile(values_us, percent)) / 1e3, 2) if values_us else None


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
