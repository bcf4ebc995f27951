"""What must hold of every stream: numbers without a hole, and what was streamed is what is stored."""

import itertools
from collections.abc import Sequence
from typing import Any

from engine.events import Event, Transcript, TurnSnapshot, fold
from tests.e2e.kit.client import Asked, Client

SEQ_PER_ATTEMPT = 1_000_000


def check_numbers(events: Sequence[Event]) -> None:
    """Growing by one, but for a new attempt and where a snapshot fills a hole."""
    assert events, "no events"
    for before, event in itertools.pairwise(events):
        assert event.seq > before.seq, f"{before} then {event}"
        starts_attempt = event.seq % SEQ_PER_ATTEMPT == 1
        if not (starts_attempt or isinstance(event, TurnSnapshot)):
            assert event.seq == before.seq + 1, f"{before} then {event}"
    assert [e.is_last for e in events] == [False] * (len(events) - 1) + [True]
    assert len({e.turn_id for e in events}) == 1


def check_stored(client: Client, asked: Asked, events: Sequence[Event]) -> list[dict[str, Any]]:
    """The fold of these events is what the chat holds, each message once; returns it."""
    check_numbers(events)
    seen: Transcript = fold(events)
    stored = client.written(asked)
    assert seen.messages == stored
    assert seen.text == {}
    active = {m["id"] for m in client.messages(asked.chat_id)}
    assert active >= {m["id"] for m in stored}
    return stored
