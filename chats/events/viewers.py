"""Deliver events to all viewers in this web process, over one Redis connection.

A viewer registers a queue, reads what the stream already holds, then follows. The hub reads all
watched streams with one XREAD and is woken by CLIENT UNBLOCK when one is added. Redis is only the
fast way: turns that are silent are looked up in Postgres every SILENT_SECONDS, so that a viewer
learns of the end even if Redis lost everything. A viewer that is too slow loses its queue and
catches up from a snapshot; the turn never waits for it. Every WELCOME_SECONDS the
credentials of all viewers are checked together: a viewer whose key was revoked, or whose session
was signed out, is refused.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError
from redis.exceptions import RedisError

from accounts.sign_in.credentials import AnyCredential, still_good
from amber.lib import redis as amber_redis
from amber.lib.database.connections import make_async
from amber.lib.database.tenant import across_tenants
from amber.lib.rest.drain import drain
from chats.events import open_streams
from chats.models import Turn
from engine.events import LIVE_STATUSES

logger = structlog.get_logger(__name__)

SILENT_SECONDS = 2.0
WELCOME_SECONDS = 5.0
"""Six queries at most for a whole process; a revoked key is seen within twice the time."""
_BLOCK_MS = 2_000
"""Well below `amber_redis.LONGEST_WAIT_SECONDS`, after which a connection counts as half-open."""
ROUND_SECONDS = 10.0
"""A hub that has not read for so long is not following: longer than it takes to reconnect."""
_QUEUE_EVENTS = 2_000
_QUEUE_BYTES = 4_000_000
"""What one viewer's queue holds at most, with one event more: a slow viewer costs so much, then catches up."""
_BATCH_EVENTS = 500
_PAUSE_SECONDS = 0.2
_WAKE_PAUSE_SECONDS = 0.001
_LONGEST_WAKE_PAUSE_SECONDS = 0.1
_GATHER_SECONDS = 0.01
"""The pause after each read where _MANY streams are read, so that their events are read together; with
fewer it is shorter in proportion.

Without the pause reading took 28% of a busy web process's CPU. First words are not held up: streams
that have brought no text yet are read during the pause, too.
"""
_MANY: Final = 20
_SPEAKING: Final = frozenset({"text.delta", "reasoning.delta"})


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event as Redis holds it: `data` is its JSON."""

    seq: int
    name: str
    data: bytes


CLOSING: Final = StreamEvent(0, "", b"")
"""Put in a viewer's queue to wake it when this process stops; it is never sent to clients."""


@dataclass(eq=False, slots=True)
class Viewer:
    """One reader of one turn. None in the queue means: look into Postgres, unless `is_refused`.

    `credential` is None if there is nothing to check again.
    """

    turn_id: UUID
    key: bytes
    credential: AnyCredential | None = None
    is_refused: bool = False
    queue: "asyncio.Queue[StreamEvent | None]" = field(
        default_factory=lambda: asyncio.Queue(_QUEUE_EVENTS)
    )
    heard_at: float = field(default_factory=time.monotonic)
    seq: int = 0
    watchers: tuple[open_streams.Watcher, ...] = ()
    queued_bytes: int = 0

    async def take(self) -> "list[StreamEvent | None]":
        """Wait for events, and return all that are queued."""
        events = [await self.queue.get()]
        while not self.queue.empty():
            events.append(self.queue.get_nowait())
        self.queued_bytes = 0
        return events


Tasks = dict[str, "asyncio.Task[None]"]
Work = Callable[[], Coroutine[Any, Any, None]]
"""What a hub does in a task of its own while it has viewers; tasks are known by its name."""


class Hub:
    """The viewers of one event loop."""

    def __init__(self) -> None:
        self._viewers: dict[bytes, set[Viewer]] = {}
        self._last_ids: dict[bytes, bytes] = {}
        self._starting: set[bytes] = set()
        """Streams that have brought no text yet."""
        self._reading: set[bytes] = set()
        """The streams that the reader knows of."""
        self._client_id: int | None = None
        self._is_blocked = False
        """Whether the reader waits in Redis, and does not know of viewers added since."""
        self._read_at = 0.0
        """time.monotonic() of the last answer to an XREAD, or of the first viewer."""
        self._tasks: Tasks = {}
        drain.on_closing(self.close)

    def close(self) -> None:
        """Wake all viewers: streams that can be resumed end."""
        for viewer in [each for all_ in self._viewers.values() for each in all_]:
            _put(viewer, CLOSING)

    def add(self, viewer: Viewer) -> bool:
        """Follow a turn from now on. Register before reading what is there: then nothing is missed.

        Return True if nobody followed this turn here: its stream is read from the beginning.
        """
        is_first = viewer.key not in self._viewers
        if not self._viewers:
            self._read_at = time.monotonic()
        self._viewers.setdefault(viewer.key, set()).add(viewer)
        open_streams.note(viewer.watchers, 1)
        if is_first:
            self._last_ids[viewer.key] = b"0-0"
            self._starting.add(viewer.key)
        begin_missing(
            self._tasks,
            (self._read_forever, self._wake, self._watch_silent, self._watch_credentials),
        )
        return is_first

    def remove(self, viewer: Viewer) -> None:
        """Stop following. The reader ends once nobody is left."""
        mine = self._viewers.get(viewer.key)
        if mine is not None:
            mine.discard(viewer)
            open_streams.note(viewer.watchers, -1)
            if not mine:
                del self._viewers[viewer.key]
                del self._last_ids[viewer.key]
                self._starting.discard(viewer.key)

    @property
    def is_following(self) -> bool:
        """Whether viewers, if there are any, get new events. Any thread may ask."""
        return not self._viewers or time.monotonic() - self._read_at < ROUND_SECONDS

    async def _wake(self) -> None:
        """Interrupt the reader until it reads all watched streams.

        Once is not enough: it may have been just about to block.
        """
        pause_seconds = _WAKE_PAUSE_SECONDS
        while self._client_id is not None and self._viewers.keys() - self._reading:
            try:
                if self._is_blocked:
                    await amber_redis.async_client().client_unblock(self._client_id)
            except (RedisError, OSError):
                return
            await asyncio.sleep(pause_seconds)
            # On a half-open connection the reader does not notice for seconds.
            pause_seconds = min(2 * pause_seconds, _LONGEST_WAKE_PAUSE_SECONDS)

    async def _read_forever(self) -> None:
        while self._viewers:
            try:
                await self._read_connected()
            except (RedisError, OSError) as exc:
                logger.warning("viewers_lost_redis", reason=type(exc).__name__)
                await asyncio.sleep(_PAUSE_SECONDS)
            finally:
                self._client_id, self._is_blocked = None, False

    async def _read_connected(self) -> None:
        """Read on a connection of its own, whose id CLIENT UNBLOCK needs."""
        async with amber_redis.async_blocking_client().client() as client:
            self._client_id = await client.client_id()
            connection: Any = client.connection
            while self._viewers:
                self._reading = set(self._last_ids)
                if await self._read(connection, self._reading, _BLOCK_MS):
                    await self._gather(connection)

    async def _gather(self, connection: Any) -> None:
        """Wait until the events of many turns can be read together, but deliver first words at once."""
        share = min(1.0, len(self._reading) / _MANY)
        until = time.monotonic() + share * _GATHER_SECONDS
        while (seconds := until - time.monotonic()) > 0:
            if not self._starting:
                await asyncio.sleep(seconds)
                return
            # Also those that came meanwhile, so that `_wake` need not interrupt the reader.
            self._reading |= self._starting
            await self._read(connection, self._starting, max(1, round(seconds * 1_000)))

    async def _read(self, connection: Any, keys: Collection[bytes], block_ms: int) -> bool:
        """Wait so long for events of these streams, and deliver them. Return whether there were any."""
        # Past the client's own xread, which makes dicts of all fields: a third of its CPU.
        limits = (b"COUNT", _BATCH_EVENTS, b"BLOCK", block_ms)
        last_ids = [self._last_ids[key] for key in keys]
        command = (b"XREAD", *limits, b"STREAMS", *keys, *last_ids)
        self._is_blocked = True
        await connection.send_packed_command(amber_redis.pack(command))
        found: Any = await connection.read_response()
        self._is_blocked = False
        self._read_at = time.monotonic()
        for key, entries in found or ():
            self._deliver(key, entries)
        return bool(found)

    def _deliver(self, key: bytes, entries: Iterable[tuple[bytes, Sequence[bytes]]]) -> None:
        viewers = self._viewers.get(key)
        if viewers is None:
            return
        for entry_id, fields in entries:
            self._last_ids[key] = entry_id
            event = decode(entry_id, dict(zip(fields[::2], fields[1::2], strict=True)))
            if event.name in _SPEAKING:
                self._starting.discard(key)
            for viewer in viewers:
                _put(viewer, event)

    async def _watch_silent(self) -> None:
        """Tell viewers of silent turns when Postgres knows more than they do."""
        while self._viewers:
            await asyncio.sleep(SILENT_SECONDS)
            since = time.monotonic() - SILENT_SECONDS
            silent = [v for all_ in self._viewers.values() for v in all_ if v.heard_at < since]
            if silent:
                try:
                    known = await _states({v.turn_id for v in silent})
                except (DatabaseError, InterfaceError) as exc:
                    logger.warning("silent_turns_not_looked_up", reason=type(exc).__name__)
                    continue
                for viewer in silent:
                    # What is queued may be all that Postgres knows more.
                    if viewer.queue.empty() and _knows_more(known.get(viewer.turn_id), viewer.seq):
                        _put(viewer, None)

    async def _watch_credentials(self) -> None:
        while self._viewers:
            await asyncio.sleep(WELCOME_SECONDS)
            for viewer in await find_unwelcome(self._viewers):
                viewer.is_refused = True
                _put(viewer, None)


def begin_missing(tasks: Tasks, works: Iterable[Work]) -> None:
    """Begin those of a hub's works whose task has not begun, or has ended."""
    for work in works:
        task = tasks.get(work.__name__)
        if task is None or task.done():
            tasks[work.__name__] = asyncio.get_running_loop().create_task(work())


class HasCredential(Protocol):
    """A viewer of either hub."""

    @property
    def credential(self) -> AnyCredential | None: ...


AnyViewer = TypeVar("AnyViewer", bound=HasCredential)


async def find_unwelcome(viewers: Mapping[bytes, Collection[AnyViewer]]) -> list[AnyViewer]:
    """Return those whose credential is no longer valid; nobody while Postgres is away."""
    watching = [viewer for mine in viewers.values() for viewer in mine]
    try:
        valid = await find_valid({v.credential for v in watching if v.credential})
    except (DatabaseError, InterfaceError) as exc:
        logger.warning("credentials_not_looked_up", reason=type(exc).__name__)
        return []
    return [v for v in watching if v.credential is not None and v.credential not in valid]


def decode(entry_id: bytes, fields: dict[bytes, bytes]) -> StreamEvent:
    return StreamEvent(int(entry_id.split(b"-")[0]), fields[b"e"].decode(), fields[b"d"])


async def read_stream(key: bytes, *, least: str, count: int | None = None) -> list[StreamEvent]:
    """Return the stream's events from id `least` on, oldest first. Raises RedisError, OSError."""
    found: Any = await amber_redis.async_client().xrange(key, min=least, count=count)
    return [decode(entry_id, fields) for entry_id, fields in found]


def _put(viewer: Viewer, event: StreamEvent | None) -> None:
    viewer.heard_at = time.monotonic()
    # Too slow: drop everything, and let the viewer catch up from a snapshot.
    if viewer.queue.full() or viewer.queued_bytes > _QUEUE_BYTES:
        while not viewer.queue.empty():
            viewer.queue.get_nowait()
        event, viewer.queued_bytes = None, 0
    viewer.queued_bytes += len(event.data) if event else 0
    viewer.queue.put_nowait(event)


def _knows_more(state: tuple[str, int] | None, seq: int) -> bool:
    """Whether the turn is deleted, over, or further than this viewer."""
    return state is None or state[0] not in LIVE_STATUSES or state[1] > seq


# A hub's tasks begin with its first viewer, and so act for that one's tenant; but they look after all.
@make_async
def _states(turn_ids: set[UUID]) -> dict[UUID, tuple[str, int]]:
    with across_tenants():
        rows = Turn.objects.filter(pk__in=turn_ids).values_list("pk", "status", "seq")
        return {pk: (status, seq) for pk, status, seq in rows}


@make_async
def find_valid(credentials: set[AnyCredential]) -> set[AnyCredential]:
    """Return the credentials that are still valid, whoever's they are, in a thread of its own."""
    with across_tenants():
        return still_good(credentials)


_hubs: dict[Any, Hub] = {}


def hub() -> Hub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub()
    return _hubs[loop]


def are_followed() -> bool:
    """Whether the viewers of this process get new events; /readyz asks for it."""
    return all(each.is_following for each in list(_hubs.values()))
