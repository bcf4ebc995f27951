"""Run turns for hours: measure how much memory each process gains, and whether it goes on gaining.

Twenty turns are always in flight: questions in new chats and in chats that grow, some with a tool,
some with a library; a few turns have a second viewer, a few lose the only one. Documents come all
the while. What a process gains first is no growth: threads start, caches fill. So the first
document holds more words than any cache does, and the slope is that of the second half: the median
of the slopes between all pairs of samples (Theil-Sen), which a peak does not move.

Answers come slowly, so that a run of hours leaves the machine to others; `--dense` asks as fast as
it can, for what grows with the number of turns. Why memory grows is not measured.
"""

import asyncio
import json
import random
import re
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import combinations, count
from typing import Any

import aiohttp
import psutil
import redis
import uvloop

from bench import rest
from bench.ingestion import new_text
from bench.loadgen import say
from bench.report import Finding, align
from bench.rest import signed_in
from bench.stand import Memory, RunningAmber, Stand, memory

TURNS_AT_ONCE = 20
LIBRARIES = 4
READ_SECONDS = 300
DOCUMENT_WORDS = 55_000
MESSAGE_WORDS = 12_000
MESSAGES = 5
"""Together more words than are remembered: 50,000 where a text is embedded, 10,000 where one is
read."""
CHAT_QUESTIONS = 40
"""After so many a chat that grows is left for a new one: what a turn reads is then as much in the
last hour as in the first, so that a slope is the process's and not the load's."""
AT_MOST: dict[str, float] = {"web": 2, "chat": 2, "ingest": 2}
"""MB an hour: what noise looks like over an hour. Servers cache what is stored, and more is."""
SHOWN_SECONDS = 600
"""Of one line of the table."""
_LAST_EVENT = re.compile(r"^event: turn\.(completed|incomplete|failed|cancelled)$", re.MULTILINE)

Call = Callable[..., Awaitable[Any]]
_numbers = count()


@dataclass(frozen=True, slots=True)
class Pace:
    """How the provider answers, how often a document comes, how often memory is read."""

    first_token_ms: float
    token_ms: float
    tokens: tuple[int, int]
    document_seconds: float
    sample_seconds: float


STEADY = Pace(300, 100, (60, 180), 6.0, 30.0)
"""Three turns in two seconds, 190 tokens a second in all: a quarter of a core with everything."""
DENSE = Pace(0, 0, (3, 8), 0.3, 5.0)


@dataclass(frozen=True, slots=True)
class Sample:
    """What was held at a moment, in MB, by process or server."""

    seconds: float
    turns: int
    documents: int
    held: dict[str, float]


@dataclass(slots=True)
class Soak:
    """What the load has done so far, and what it asks next."""

    pace: Pace
    ends_at: float
    turns: int = 0
    documents: int = 0
    errors: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.ends_at


def soak(stand: Stand, provider_url: str, *, minutes: float, is_dense: bool) -> list[Finding]:
    pace = DENSE if is_dense else STEADY
    with stand.amber(provider_url) as amber:
        server = redis.Redis.from_url(stand.remembered()["REDIS_URL"])
        state = Soak(pace, ends_at=time.monotonic() + minutes * 60)
        try:
            uvloop.run(_run(state, amber, server))
        finally:  # what broke off after an hour has much to tell, too
            server.close()
            say(table(state.samples))
    return _findings(state)


async def _run(state: Soak, amber: RunningAmber, server: redis.Redis) -> None:
    timeout = aiohttp.ClientTimeout(READ_SECONDS)
    # A connection that lay idle may be closed just as it is taken again.
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with signed_in(amber, timeout=timeout, connector=connector) as session:
        call = partial(rest.call, session)
        people = await _prepare(call)
        async with asyncio.TaskGroup() as group:
            group.create_task(_sample_often(state, amber, server))
            group.create_task(_ingest_often(state, call, people.libraries))
            for place in range(TURNS_AT_ONCE):
                group.create_task(_ask_often(state, session, call, people, place))


# -- The load --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    plain: str
    readers: Sequence[str]
    """Assistants with a library each."""
    libraries: Sequence[str]


async def _prepare(call: Call) -> Prepared:
    plain = (await call("GET", "assistants/"))["results"][0]["id"]
    libraries = [
        (await call("POST", "libraries/", {"name": f"Shelf {n}"}))["id"] for n in range(LIBRARIES)
    ]
    readers = [
        (await call("POST", "assistants/", {"name": "Reads", "model": "auto", "library_id": pk}))
        for pk in libraries
    ]
    people = Prepared(plain, [made["id"] for made in readers], libraries)
    await _fill_caches(call, people)
    return people


async def _fill_caches(call: Call, people: Prepared) -> None:
    document = {"name": "words.txt", "text": _new_words(DOCUMENT_WORDS)}
    await call("POST", f"libraries/{people.libraries[0]}/documents/", document)
    for _ in range(MESSAGES):
        chat_id = await _new_chat(call, people.plain)
        question = f"{_new_words(MESSAGE_WORDS)} [[fake tokens=3]]"
        message = {"role": "human", "content": question}
        await call("POST", f"chats/{chat_id}/messages/", message)


def _new_words(count: int) -> str:
    return " ".join(f"word{random.getrandbits(32):x}" for _ in range(count))


async def _ingest_often(state: Soak, call: Call, libraries: Sequence[str]) -> None:
    while not state.is_over:
        began = time.monotonic()
        path = f"libraries/{libraries[state.documents % LIBRARIES]}/documents/"
        document = {"name": "shelf.txt", "text": f"{_rare_words()}. {new_text()}"}
        with _noting(state):
            await call("POST", path, document)
        state.documents += 1
        spent = time.monotonic() - began
        await asyncio.sleep(max(0.0, state.pace.document_seconds - spent))


@contextmanager
def _noting(state: Soak) -> Iterator[None]:
    """Note a failure, which does not end the run; all are reported at the end."""
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, RuntimeError) as error:
        state.errors.append(f"{type(error).__name__}: {error}"[:200])
        say(f"        {state.errors[-1]}")


async def _ask_often(
    state: Soak, session: aiohttp.ClientSession, call: Call, people: Prepared, place: int
) -> None:
    """One place of the twenty. Of ten questions five are asked in new chats, three in this place's
    own, which grows, two in one that reads a library and grows, too."""
    await asyncio.sleep(random.uniform(0, 5))  # so that the places do not ask in step
    reader = people.readers[place % LIBRARIES]
    own, reading = _GrowingChat(call, people.plain), _GrowingChat(call, reader)
    for n in count(place):
        if state.is_over:
            return
        kind = n % 10
        question = _question(state.pace, _CALLED.get(kind, ""))
        with _noting(state):
            if kind < 5:
                chat_id = await _new_chat(call, people.plain)
            else:
                chat_id = await (own if kind < 8 else reading).next()
            others = int(kind == 0)
            await _turn(session, chat_id, question, others=others, is_left=kind == 5)
        state.turns += 1


@dataclass(slots=True)
class _GrowingChat:
    call: Call
    assistant_id: str
    chat_id: str = ""
    questions: int = 0

    async def next(self) -> str:
        """Return the chat to ask in: the last one, until it has had its questions."""
        if self.questions % CHAT_QUESTIONS == 0:
            self.chat_id = await _new_chat(self.call, self.assistant_id)
        self.questions += 1
        return self.chat_id


async def _new_chat(call: Call, assistant_id: str) -> str:
    return str((await call("POST", "chats/", {"assistant_id": assistant_id}))["id"])


_CALLED = {3: " call=calculate args=eyJleHByZXNzaW9uIjoiNiAqIDcifQ", 9: " call=search_library"}


def _question(pace: Pace, called: str) -> str:
    tokens = random.randint(*pace.tokens)
    marks = f"tokens={tokens} ttft={pace.first_token_ms} itl={pace.token_ms}{called}"
    return f"What of {_rare_words()} moved the {random.choice(_THINGS)}? [[fake {marks}]]"


_THINGS = ("stone", "river", "garden", "engine", "window", "paper")


def _rare_words() -> str:
    """Return words that nobody has said before, as people's names and numbers are."""
    return f"{random.choice(_THINGS)}{next(_numbers)} and {_new_words(1)}"


async def _turn(
    session: aiohttp.ClientSession,
    chat_id: str,
    question: str,
    *,
    others: int,
    is_left: bool,
) -> None:
    """Ask and watch to the end, with so many other viewers. `is_left`: disconnect and come back."""
    headers = {"Accept": "text/event-stream"}
    path, body = f"chats/{chat_id}/messages/", {"role": "human", "content": question}
    async with AsyncExitStack() as watching:
        asked = await watching.enter_async_context(session.post(path, json=body, headers=headers))
        if asked.status != 200:
            raise RuntimeError(f"{asked.status}: {(await asked.text())[:120]}")
        turn_id = await _turn_id(asked.content)
        if is_left:
            asked.close()
        watched = [_watch(session, turn_id) for _ in range(others + is_left)]
        said = await asyncio.gather(*watched, *([] if is_left else [asked.text()]))
    for each in said:
        ended = _LAST_EVENT.search(each)
        if ended is None or ended[1] != "completed":
            raise RuntimeError(f"not completed: {each[-120:]}")


async def _turn_id(stream: aiohttp.StreamReader) -> str:
    """Read up to the first event, which comments may precede on a busy machine."""
    while True:
        _, _, data = (await stream.readuntil(b"\n\n")).decode().partition("data: ")
        if data:
            return str(json.loads(data)["turn_id"])


async def _watch(session: aiohttp.ClientSession, turn_id: str) -> str:
    async with session.get(f"turns/{turn_id}/events/") as answer:
        return await answer.text()


# -- What is held ----------------------------------------------------------------------------------


async def _sample_often(state: Soak, amber: RunningAmber, server: redis.Redis) -> None:
    began = time.monotonic()
    while not state.is_over:
        with suppress(psutil.NoSuchProcess):  # it ended while it was looked at
            held = _held(amber, server)
            sample = Sample(time.monotonic() - began, state.turns, state.documents, held)
            state.samples.append(sample)
            say(_line(sample))
        await asyncio.sleep(state.pace.sample_seconds)


def _held(amber: RunningAmber, server: redis.Redis) -> dict[str, float]:
    """Return the resident memory of Amber's processes, Postgres' share as one, and Redis' own number.

    Amber's proportional memory would change as other processes with the same Python come and go.
    """
    processes = amber.processes()
    held = {role: memory(processes[role][0]).rss for role in ("web", "chat", "ingest")}
    parsers = processes["ingest"][1:]
    held["parsers"] = sum(each.rss for each in _memory_of(parsers))
    postgres = _memory_of(each for each in amber.servers() if "postgres" in each.name())
    held["postgres"] = sum(each.rss if each.pss is None else each.pss for each in postgres)
    used: Any = server.info("memory")
    held["redis"] = used["used_memory"] / 2**20
    return held


def _memory_of(processes: Iterable[psutil.Process]) -> Iterator[Memory]:
    """Return the memory of those processes that still exist."""
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            yield memory(each)


def _line(sample: Sample) -> str:
    sizes = "  ".join(f"{name} {each:.1f}" for name, each in sample.held.items())
    minutes = sample.seconds / 60
    return f"    {minutes:6.1f} min  {sample.turns} turns  {sample.documents} documents  {sizes}"


def table(samples: Sequence[Sample]) -> str:
    """Return the medians of each ten minutes, in MB."""
    if not samples:
        return ""
    names = list(samples[-1].held)
    rows = [("minutes", "turns", "documents", *names)]
    for number in range(int(samples[-1].seconds // SHOWN_SECONDS) + 1):
        start = number * SHOWN_SECONDS
        these = [each for each in samples if start <= each.seconds < start + SHOWN_SECONDS]
        if not these:
            continue
        sizes = [f"{statistics.median(each.held[name] for each in these):.1f}" for name in names]
        to = f"to {(start + SHOWN_SECONDS) // 60}"
        rows.append((to, str(these[-1].turns), str(these[-1].documents), *sizes))
    return align(rows, left=0)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median slope between all pairs (https://doi.org/10.2307/2285891); 0 for one point.

    O(n²) pairs: 240 points make 28,680.
    """
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x2 > x1]
    return statistics.median(slopes) if slopes else 0.0


def _findings(state: Soak) -> list[Finding]:
    """Return the slope of each process over the second half."""
    last = state.samples[-1]
    later = [each for each in state.samples if each.seconds >= last.seconds / 2]
    problems = f"{len(state.errors)} ERRORS ({state.errors[0]}); " if state.errors else ""
    found = []
    for name in last.held:
        points = [(each.seconds / 3600, each.held[name]) for each in later]
        turns = last.turns - later[0].turns or 1
        grown = slope(points) * (last.seconds - later[0].seconds) / 3600
        sizes = [each.held[name] for each in state.samples]
        found.append(
            Finding(
                f"memory gained, {name}, second half of {last.seconds / 60:.0f} minutes",
                slope(points),
                "MB/h",
                at_most=AT_MOST.get(name),
                note=f"{problems}{sizes[0]:.1f} MB, at half {points[0][1]:.1f}, at the end"
                f" {sizes[-1]:.1f}; {grown / turns * 1_000:.2f} MB per 1,000 turns",
            )
        )
        problems = ""
    found[0].details.update(
        turns=last.turns,
        documents=last.documents,
        errors=state.errors[:20],
        samples=[asdict(each) for each in state.samples],
    )
    return found
