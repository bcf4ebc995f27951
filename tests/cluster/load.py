"""People who ask and watch all the time, as the page does it: over HAProxy, again after whatever fails.

Each of them has a chat, asks one question after the other with an `Idempotency-Key`, and follows the turn
until its last event, with Last-Event-ID over as many connections as it takes. What happened is written
down; nothing here judges it. Answers are paced, so that many of them cost little.
"""

import asyncio
import json
import random
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from uuid import uuid4

import aiohttp
from pydantic import TypeAdapter

from engine.events import AnyEvent, Event

T = TypeVar("T")

TOKENS: Final = (30, 60)
"""How long answers are, at least and at most."""
ITL_MS: Final = 250
READER: Final = "Readers"
READ_SECONDS: Final = 0.5
"""The pause between two lists of somebody who only reads."""
RETRY_SECONDS: Final = 0.25
"""The first pause after a failure; the page's, too."""
LONGEST_RETRY_SECONDS: Final = 2.0
SILENT_SECONDS: Final = 40
"""After so long without a byte a connection is taken for dead, as docs/stream-protocol.md advises."""
AGAIN: Final = (429, 502, 503, 504)
"""Answers after which the same request is sent again; 409 `idempotency_in_progress` is another."""

_EVENTS: TypeAdapter[Event] = TypeAdapter(AnyEvent)


@dataclass(eq=False)
class Question:
    """One question and all that was seen of it. Times are time.monotonic()."""

    organization: str
    chat_id: str
    tokens: int
    key: str = field(default_factory=lambda: str(uuid4()))
    asked_at: float = field(default_factory=time.monotonic)
    accepted_at: float = 0.0
    message_id: str = ""
    turn_id: str = ""
    refusals: list[tuple[float, str]] = field(default_factory=list)
    """When an attempt to ask failed, and how."""
    cuts: list[tuple[float, str]] = field(default_factory=list)
    """When a stream ended before its turn, and how."""
    events: list[Any] = field(default_factory=list)
    heard_at: list[float] = field(default_factory=list)

    @property
    def text(self) -> str:
        return f"Tell me. [[fake tokens={self.tokens} itl={ITL_MS}]]"

    @property
    def is_over(self) -> bool:
        return bool(self.events) and self.events[-1].is_last

    def silences(self) -> list[tuple[float, float]]:
        """Return when each pause between two events began, and when it ended."""
        ends = [*self.heard_at, *([] if self.is_over else [time.monotonic()])]
        return list(zip([self.accepted_at, *self.heard_at], ends, strict=False))


class Load:
    """People in a thread of their own, from `start` until `finish`."""

    def __init__(self, url: str, keys: dict[str, str], people: int, reader_key: str) -> None:
        """`keys` are by organization; people are spread over them, and share its assistant. The reader writes
        nothing once there is a chat to be found, so that a replica may answer."""
        self._url = url
        self._keys = {**keys, READER: reader_key}
        self._askers = list(keys)
        self._people = people
        self.questions: list[Question] = []
        self.reads: Counter[str] = Counter()
        self._assistants: dict[str, str] = {}
        self._is_over = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="load", daemon=True)

    # -- In the caller's thread ----------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()
        self._submit(self._open()).result(30)
        names = self._askers
        for name in names:
            body = {"name": f"Of {name}", "model": "fake-model"}
            self._assistants[name] = self._submit(self._make(name, "assistants/", body)).result(30)
        self._talks = [
            self._submit(self._talk(names[number % len(names)], number / self._people))
            for number in range(self._people)
        ]
        self._talks.append(self._submit(self._read_on()))

    def probe(self) -> "Future[Question]":
        """Ask one short question now."""
        return self._submit(self._probe(self._askers[0]))

    def live(self) -> list[Question]:
        """Return the accepted questions whose answers are under way."""
        return [q for q in self.questions if q.accepted_at and not q.is_over]

    def check(self) -> None:
        """Raise what ended somebody's talk, if anything did."""
        for talk in self._talks:
            if talk.done():
                talk.result()

    def stop_asking(self) -> None:
        self._is_over = True

    def finish(self, seconds: float) -> None:
        """Wait until everybody has the answer to their last question."""
        self.stop_asking()
        deadline = time.monotonic() + seconds
        for talk in self._talks:
            talk.result(max(0.1, deadline - time.monotonic()))

    def close(self) -> None:
        """Send everybody home, in the middle of an answer, too."""
        self._submit(self._close()).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    # -- On the loop -----------------------------------------------------------------------------------

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_read=SILENT_SECONDS),
        )

    async def _close(self) -> None:
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._session.close()

    async def _talk(self, organization: str, place: float) -> None:
        """Ask and listen until nobody asks any more. `place` spreads the first questions over an answer."""
        chosen = random.Random(place)
        await asyncio.sleep(place * TOKENS[1] * ITL_MS / 1_000)
        chat_id = await self._new_chat(organization)
        while not self._is_over:
            await self._ask_and_follow(Question(organization, chat_id, chosen.randint(*TOKENS)))

    async def _read_on(self) -> None:
        """List one's chats again and again until nobody asks any more: the one that there is must be there."""
        chat_id = await self._make(READER, "chats/", {})
        while not self._is_over:
            self.reads[await self._list(chat_id)] += 1
            await asyncio.sleep(READ_SECONDS)

    async def _list(self, chat_id: str) -> str:
        """Return how the answer was; raise AssertionError for one without the chat."""
        headers = self._headers(READER)
        try:
            async with self._session.get(f"{self._url}/api/v1/chats/", headers=headers) as answer:
                said = await answer.text()
        except (aiohttp.ClientError, TimeoutError) as exc:
            return type(exc).__name__
        if answer.status != 200:
            _refuse_final(answer.status, said)
            return _code_of(answer.status, said)
        assert [chat["id"] for chat in json.loads(said)["results"]] == [chat_id], said
        return "ok"

    async def _probe(self, organization: str) -> Question:
        asked_at = time.monotonic()
        chat_id = await self._new_chat(organization)
        question = Question(organization, chat_id, tokens=3, asked_at=asked_at)
        await self._ask_and_follow(question)
        return question

    async def _ask_and_follow(self, question: Question) -> None:
        self.questions.append(question)
        pauses = _pauses()
        is_accepted = await self._ask(question)
        while not is_accepted:
            await asyncio.sleep(next(pauses))
            is_accepted = await self._ask(question)
        pauses = _pauses()
        while not question.is_over:
            heard = len(question.events)
            how = await self._follow(question)
            if not question.is_over:
                question.cuts.append((time.monotonic(), how))
                pauses = _pauses() if len(question.events) > heard else pauses
                await asyncio.sleep(next(pauses))

    async def _new_chat(self, organization: str) -> str:
        return await self._make(
            organization, "chats/", {"assistant_id": self._assistants[organization]}
        )

    async def _make(self, organization: str, path: str, body: dict[str, str]) -> str:
        """Return the id of what was made, however often it takes to ask for it."""
        headers = {**self._headers(organization), "Idempotency-Key": str(uuid4())}
        pauses = _pauses()
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                url = f"{self._url}/api/v1/{path}"
                async with self._session.post(url, json=body, headers=headers) as answer:
                    if answer.status == 201:
                        return str((await answer.json())["id"])
                    _refuse_final(answer.status, await answer.text())
            await asyncio.sleep(next(pauses))

    async def _ask(self, question: Question) -> bool:
        """Post the question once; whether it was accepted."""
        path = f"{self._url}/api/v1/chats/{question.chat_id}/messages/"
        headers = {**self._headers(question.organization), "Idempotency-Key": question.key}
        body = {"content": question.text}
        try:
            async with self._session.post(path, json=body, headers=headers) as answer:
                said = await answer.text()
                if answer.status == 201:
                    made = json.loads(said)
                    question.message_id = made["message"]["id"]
                    question.turn_id = made["turn"]["id"]
                    question.accepted_at = time.monotonic()
                    return True
        except (aiohttp.ClientError, TimeoutError) as exc:
            question.refusals.append((time.monotonic(), type(exc).__name__))
            return False
        question.refusals.append((time.monotonic(), _code_of(answer.status, said)))
        _refuse_final(answer.status, said)
        return False

    async def _follow(self, question: Question) -> str:
        """Follow the turn over one connection, from after the last event that came; say how it ended."""
        headers = {**self._headers(question.organization), "Accept": "text/event-stream"}
        if question.events:
            headers["Last-Event-ID"] = str(question.events[-1].seq)
        path = f"{self._url}/api/v1/turns/{question.turn_id}/events/"
        try:
            async with self._session.get(path, headers=headers) as answer:
                if answer.status != 200:
                    said = await answer.text()
                    _refuse_final(answer.status, said)
                    return _code_of(answer.status, said)
                async for event in _events_of(answer.content):
                    question.events.append(event)
                    question.heard_at.append(time.monotonic())
        except (aiohttp.ClientError, TimeoutError) as exc:
            return type(exc).__name__
        return "end"

    def _headers(self, organization: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._keys[organization]}"}


async def _events_of(lines: aiohttp.StreamReader) -> AsyncIterator[Event]:
    """Yield whole events with a number; one that was cut in the middle is thrown away."""
    data, number = b"", b""
    async for line in lines:
        if line.startswith(b"data: "):
            data = line[6:]
        elif line.startswith(b"id: "):
            number = line[4:]
        elif line == b"\n":
            if data and number:
                yield _EVENTS.validate_json(data)
            data, number = b"", b""


def _pauses() -> Any:
    pause_seconds = RETRY_SECONDS
    while True:
        yield pause_seconds
        pause_seconds = min(2 * pause_seconds, LONGEST_RETRY_SECONDS)


def _code_of(status: int, said: str) -> str:
    """Return the error's status with its code, if Amber has answered."""
    try:
        return f"{status} {json.loads(said)['error']['code']}"
    except (ValueError, KeyError, TypeError):
        return str(status)


def _refuse_final(status: int, said: str) -> None:
    """Raise AssertionError for an answer after which nobody would ask again."""
    is_for_later = status in AGAIN or "idempotency_in_progress" in said
    assert is_for_later, (status, said)


def count_words(words: Sequence[str]) -> str:
    """Return how often each was said, the commonest first."""
    return ", ".join(f"{count} x {word}" for word, count in Counter(words).most_common())
