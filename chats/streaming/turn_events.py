"""Read a turn's events for one viewer, without gaps: what Redis holds, then what comes.

If the stream no longer reaches back, or has a hole, a snapshot from Postgres comes first.
"""

import asyncio
import time
from collections.abc import AsyncGenerator

from django.conf import settings
from redis.exceptions import RedisError

from accounts.principal import Principal
from accounts.sign_in.credentials import Credential, credential_of
from amber.lib.errors import NotAuthenticated
from chats.events import open_streams
from chats.events.stream import SEQ_PER_ATTEMPT, events_key
from chats.events.viewers import CLOSING, StreamEvent, Viewer, hub, read_stream
from chats.models import Turn
from chats.streaming.stored_state import place_in_queue, state_of
from engine.events import LAST_EVENTS

_CATCH_UP_SECONDS = 0.25
QUEUE_SECONDS = 2.0
"""How often a viewer of a queued turn is told its place: much longer than a turn waits on most days."""
_EARLY = 0.9
"""Timers of the event loop may end a little early."""


async def turn_events(
    turn: Turn, after: int = 0, *, viewed_by: Principal | None = None
) -> AsyncGenerator[StreamEvent | None, None]:
    """Yield the events after `after`, without gaps; None where a heartbeat is due.

    `viewed_by` None stands for the user who started the turn. Raises NotAuthenticated once the viewer's credential is no
    longer valid.
    """
    viewer = Viewer(
        turn.pk,
        events_key(turn.organization_id, turn.pk),
        credential_of(viewed_by) if viewed_by else _starter_of(turn),
        seq=after,
        watchers=open_streams.watchers_of(turn, viewed_by),
    )
    is_new = turn.attempt == 0 and turn.is_live and not turn.seq and not after
    follow = _StreamFollower(viewer, is_new=is_new)
    # Registered before anything is read: an event that comes meanwhile waits in the queue.
    is_read_from_the_start = hub().add(viewer)
    try:
        if not (is_new and is_read_from_the_start):
            for event in await follow.replay():
                yield event
        while not follow.is_over:
            for event_or_beat in await follow.next_events():
                yield event_or_beat
    finally:
        hub().remove(viewer)


def _starter_of(turn: Turn) -> Credential | None:
    if turn.user_id is None:
        return None
    return Credential(turn.organization_id, turn.user_id, turn.api_key_id)


class _StreamFollower:
    """Follows a turn's stream for one viewer, from event to event."""

    def __init__(self, viewer: Viewer, *, is_new: bool) -> None:
        self._viewer = viewer
        self._is_new = is_new
        self._waits_for_worker = is_new
        self._place: bytes | None = None
        self._place_at = time.monotonic() + _EARLY * QUEUE_SECONDS
        self._beat_at = time.monotonic()
        self.is_over = False

    async def replay(self) -> list[StreamEvent]:
        """Return what the stream holds after our place, or a snapshot if it does not reach back."""
        viewer = self._viewer
        try:
            found = await self._read_held()
            if not found and (self._is_new or not await self._is_behind()):
                return []  # nothing was missed; the hub looks into silent turns anyway
            found = found or await self._read_held()  # it may have begun since
        except (RedisError, OSError):
            return await self._snapshot()
        if not found:
            return await self._snapshot()
        # The stream still holds the very event that was seen last: nothing between was trimmed.
        if viewer.seq and found[0].seq == viewer.seq:
            # The viewer knows the end: there is nothing to send, and `_snapshot` notes that it is over.
            if len(found) == 1 and found[0].name in LAST_EVENTS:
                return await self._snapshot()
            return await self._take_all(found[1:])
        if not viewer.seq and found[0].seq == 1:
            return await self._take_all(found)
        return await self._snapshot()

    async def _read_held(self) -> list[StreamEvent]:
        """Return what Redis holds from our place on. Raises RedisError, OSError."""
        seq = self._viewer.seq
        return await read_stream(self._viewer.key, least=f"{seq}-0" if seq else "-")

    async def next_events(self) -> list[StreamEvent | None]:
        """Wait for events; return [None] when a heartbeat is due. Raises NotAuthenticated."""
        try:
            async with asyncio.timeout(self._wait_seconds):
                events = await self._viewer.take()
        except TimeoutError:
            return await self._beat()
        self._waits_for_worker = False
        if self._viewer.is_refused:
            raise NotAuthenticated(code="invalid_credential")
        if None in events:
            return list(await self._snapshot())
        woken: list[StreamEvent | None] = [None] if CLOSING in events else []
        return woken + list(await self._take_all([e for e in events if e is not None]))

    @property
    def _wait_seconds(self) -> float:
        most: float = settings.AMBER_STREAM_HEARTBEAT_SECONDS
        return min(QUEUE_SECONDS, most) if self._waits_for_worker else most

    async def _beat(self) -> list[StreamEvent | None]:
        """Return the turn's place in the queue if it has changed, or [None] if a heartbeat is due."""
        if self._waits_for_worker and time.monotonic() >= self._place_at:
            self._place_at = time.monotonic() + _EARLY * QUEUE_SECONDS
            place = await place_in_queue(self._viewer.turn_id)
            self._waits_for_worker = place is not None
            if place is not None and place != self._place:
                self._place, self._beat_at = place, time.monotonic()
                return [StreamEvent(0, "queue.position", place)]
        # While it looks every QUEUE_SECONDS only, a beat is sent too early rather than too late.
        if (
            time.monotonic()
            < self._beat_at + settings.AMBER_STREAM_HEARTBEAT_SECONDS - QUEUE_SECONDS
        ):
            return []
        self._beat_at = time.monotonic()
        return [None]

    async def _take_all(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """Return the events that are new; a snapshot fills a hole."""
        taken: list[StreamEvent] = []
        for event in events:
            # What came between registering and reading is in the queue, and was replayed.
            if event.seq <= self._viewer.seq:
                continue
            if not _follows(self._viewer.seq, event):
                return taken + await self._snapshot()
            self._viewer.seq = event.seq
            taken.append(event)
        self.is_over = bool(taken) and taken[-1].name in LAST_EVENTS
        return taken

    async def _is_behind(self) -> bool:
        state = await state_of(self._viewer.turn_id)
        return state is None or state.seq > self._viewer.seq or state.is_over

    async def _snapshot(self) -> list[StreamEvent]:
        """Return what Postgres has, as soon as the stream continues from there without a hole.

        The turn's row may lag behind the stream: until it has caught up, wait.
        """
        viewer = self._viewer
        while True:
            state = await state_of(viewer.turn_id)
            if state is None:
                self.is_over = True
                return []
            if state.resting is not None or await self._reaches(state.seq):
                break
            await asyncio.sleep(_CATCH_UP_SECONDS)
        self.is_over = state.is_over
        events = []
        if state.snapshot_seq > viewer.seq:
            events.append(StreamEvent(state.snapshot_seq, "turn.snapshot", state.snapshot))
        if state.resting is not None and viewer.seq != state.seq:
            events.append(StreamEvent(state.seq, *state.resting))
        viewer.seq = max(viewer.seq, state.seq)
        return events

    async def _reaches(self, seq: int) -> bool:
        """Whether the stream has no event after `seq`, or its next one follows without a hole."""
        try:
            found = await read_stream(self._viewer.key, least=f"({seq}-0", count=1)
        except (RedisError, OSError):
            return True
        return not found or _follows(seq, found[0])


def _follows(seq: int, event: StreamEvent) -> bool:
    """Whether no event is missing before this one: the next number, or a later attempt's first."""
    starts_attempt = event.seq % SEQ_PER_ATTEMPT == 1
    return event.seq == seq + 1 or (starts_attempt and event.seq > seq > 0)
