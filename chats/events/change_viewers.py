"""Deliver changes (`chats.events.changes`) to all pages that this web process serves.

One Redis connection listens to the channels of all their people: an idle page costs its memory, and
no query but the check of its credential every WELCOME_SECONDS, which is one for all. Whenever the
connection was lost, pages are told `ready` once it is back, since nobody knows what they missed.
"""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

import structlog
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from accounts.sign_in.credentials import AnyCredential
from amber.lib import redis as amber_redis
from amber.lib.rest.drain import drain
from chats.events.changes import READY
from chats.events.viewers import Tasks, begin_missing, find_unwelcome

logger = structlog.get_logger(__name__)

WELCOME_SECONDS: Final = 30.0
"""What is told are ids alone, so a session that ended may hear them for a little longer than a
turn's text (`viewers.WELCOME_SECONDS`)."""
_SILENCE_SECONDS: Final = 4.0
"""Below `amber_redis.LONGEST_WAIT_SECONDS`."""
_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 5.0
_QUEUED_CHANGES: Final = 100


@dataclass(eq=False, slots=True)
class ChangeViewer:
    """A page that listens to one person's channel. None in the queue: its credential ended, or this
    process stops."""

    channel: bytes
    credential: AnyCredential | None
    queue: "asyncio.Queue[bytes | None]" = field(
        default_factory=lambda: asyncio.Queue(_QUEUED_CHANGES)
    )


class ChangeHub:
    """The listening pages of one event loop."""

    def __init__(self) -> None:
        self._viewers: dict[bytes, set[ChangeViewer]] = {}
        self._pubsub: PubSub | None = None
        self._settling = asyncio.Lock()
        self._asked: set[bytes] = set()
        """Channels that Redis was asked for."""
        self._heard: set[bytes] = set()
        """Channels that Redis has said it sends."""
        self._tasks: Tasks = {}
        drain.on_closing(self.close)

    def close(self) -> None:
        """End all streams: their pages listen again at another process."""
        for viewer in [each for all_ in self._viewers.values() for each in all_]:
            _put(viewer, None)

    async def add(self, viewer: ChangeViewer) -> None:
        """Listen from now on. The first that the viewer gets is READY: once changes reach it."""
        self._viewers.setdefault(viewer.channel, set()).add(viewer)
        begin_missing(self._tasks, (self._listen_forever, self._watch_credentials))
        if viewer.channel in self._heard:
            _put(viewer, READY)
        else:
            await self._settle(viewer.channel)

    async def remove(self, viewer: ChangeViewer) -> None:
        mine = self._viewers.get(viewer.channel)
        if mine is None:
            return
        mine.discard(viewer)
        if not mine:
            del self._viewers[viewer.channel]
            # The next viewer must wait for Redis to confirm anew: until then changes would pass by.
            self._heard.discard(viewer.channel)
            await self._settle(viewer.channel)

    async def _settle(self, channel: bytes) -> None:
        """Subscribe to the channel, or unsubscribe, as its viewers want it now."""
        async with self._settling:
            # Looked at under the lock: meanwhile the viewer may have gone, or the connection.
            pubsub, is_wanted = self._pubsub, channel in self._viewers
            if pubsub is None or is_wanted == (channel in self._asked):
                return
            try:
                if is_wanted:
                    self._asked.add(channel)
                    await pubsub.subscribe(channel)
                else:
                    self._asked.discard(channel)
                    await pubsub.unsubscribe(channel)
            except (RedisError, OSError):
                self._pubsub = None  # the reader notices, and subscribes to all of them anew

    async def _listen_forever(self) -> None:
        pause_seconds = _PAUSE_SECONDS
        while self._viewers:
            try:
                async with amber_redis.async_blocking_client().pubsub() as pubsub:
                    async with self._settling:
                        self._asked = set(self._viewers)
                        await pubsub.subscribe(*self._asked)
                        self._pubsub = pubsub
                    pause_seconds = _PAUSE_SECONDS
                    await self._listen(pubsub)
                    async with self._settling:  # it is not closed while somebody asks it
                        self._pubsub = None
            except (RedisError, OSError) as exc:
                logger.warning("changes_lost_redis", reason=type(exc).__name__)
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
            finally:
                self._pubsub = None
                self._heard.clear()

    async def _listen(self, pubsub: PubSub) -> None:
        """Hand on what comes. Raises RedisError and OSError."""
        async with aclosing(amber_redis.listen(pubsub, silence_seconds=_SILENCE_SECONDS)) as heard:
            async for message in heard:
                if message["type"] == "message":
                    self._tell(message["channel"], message["data"])
                elif message["type"] == "subscribe" and message["channel"] in self._viewers:
                    self._heard.add(message["channel"])
                    self._tell(message["channel"], READY)
                if not self._viewers or self._pubsub is not pubsub:
                    return

    def _tell(self, channel: bytes, change: bytes) -> None:
        for viewer in self._viewers.get(channel, ()):
            _put(viewer, change)

    async def _watch_credentials(self) -> None:
        """End the streams of those whose credential is no longer valid."""
        while self._viewers:
            await asyncio.sleep(WELCOME_SECONDS)
            for viewer in await find_unwelcome(self._viewers):
                _put(viewer, None)


def _put(viewer: ChangeViewer, change: bytes | None) -> None:
    # Too slow: drop everything, and let the page read its lists anew.
    if viewer.queue.full():
        while not viewer.queue.empty():
            viewer.queue.get_nowait()
        # None stays: it ends the stream.
        change = change and READY
    viewer.queue.put_nowait(change)


_hubs: dict[asyncio.AbstractEventLoop, ChangeHub] = {}


def change_hub() -> ChangeHub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = ChangeHub()
    return _hubs[loop]
