"""What is refused when too much is asked at once: new turns of an old queue, streams, and slow viewers' events."""

import asyncio
import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.models import Organization
from accounts.sign_in.guest_tokens import GUEST_PREFIX
from amber.lib.database.tenant import as_tenant
from amber.lib.errors import RateLimited
from amber.lib.ids import new_id
from chats.events import open_streams, viewers
from chats.events.viewers import StreamEvent, Viewer
from chats.models import Turn
from chats.tests.rows import new_chat, new_turn, of_turn
from chats.turns import congestion
from tests.fixtures.personas import api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def old_queue(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn of ten seconds makes the queue old. The test looks at it, at once."""
    settings.AMBER_QUEUE_SECONDS = 10
    monkeypatch.setattr(congestion, "_queue", congestion._Queue())
    monkeypatch.setattr(congestion._queue, "count_question", lambda: False)


LONG = 600.0


def look_now() -> None:
    """Look, so that it holds for long, however slow the machine is."""
    congestion.look_at_queue()
    congestion._queue.seen_at = time.monotonic() + LONG


def wait(
    persona: Any, number: int, seconds: float, guest_id: str | None = None, status: str = "queued"
) -> None:
    """Queue turns that have waited for so long."""
    ids = [new_id() for _ in range(number)]
    asked = {"organization": persona.organization, "input": {}, **asker(persona, guest_id)}
    Turn.objects.bulk_create(Turn(id=pk, status=status, **asked) for pk in ids)
    since = timezone.now() - timedelta(seconds=seconds)
    Turn.objects.filter(pk__in=ids).update(created_at=since, updated_at=since)


def asker(persona: Any, guest_id: str | None = None) -> dict[str, Any]:
    return {"guest_id": guest_id} if guest_id else {"user": persona.user}


def new_question(persona: Any, guest_id: str | None = None) -> Turn:
    return Turn(organization=persona.organization, **asker(persona, guest_id))


def is_refused(persona: Any, guest_id: str | None = None) -> bool:
    look_now()
    try:
        congestion.refuse_over_share(new_question(persona, guest_id))
    except RateLimited as refused:
        assert (refused.code, refused.status) == ("queue_full", 429)
        assert refused.retry_after_seconds == congestion.RETRY_SECONDS
        return True
    return False


def test_while_the_queue_is_old_those_over_their_share_are_refused(alice, mallory, old_queue):
    wait(alice, 10, seconds=5)
    assert not is_refused(alice), "the queue is young"
    wait(alice, 10, seconds=20)
    wait(mallory, 1, seconds=1)
    assert is_refused(alice)
    assert not is_refused(mallory)
    Organization.objects.filter(pk=alice.organization.pk).update(turn_weight=100)
    assert not is_refused(alice), "its weight grants it more"
    Turn.objects.all().delete()
    assert not is_refused(alice)


def test_who_has_a_single_turn_is_let_in_however_many_others_wait(alice, mallory, old_queue):
    wait(alice, 1, seconds=20)
    wait(mallory, 1, seconds=20)
    assert not is_refused(alice)
    assert not is_refused(mallory)


def test_a_colleague_who_asks_too_much_gets_nobody_else_refused(alice, bob, old_queue):
    wait(alice, 20, seconds=20)
    assert (is_refused(alice), is_refused(bob)) == (True, False)
    wait(bob, 1, seconds=5)
    assert not is_refused(bob), "a claim takes it soon"
    wait(bob, 1, seconds=5)
    assert not is_refused(bob), "less than the average"
    wait(bob, 30, seconds=5)
    assert (is_refused(alice), is_refused(bob)) == (False, True)


def test_everybody_is_refused_once_those_with_a_single_turn_wait_too_long(alice, bob, old_queue):
    wait(alice, 20, seconds=20)
    wait(bob, 1, seconds=20)
    assert (is_refused(alice), is_refused(bob)) == (True, True)
    assert is_refused(alice, guest_id="a program's")


def test_guests_who_ask_too_much_get_no_member_refused(alice, old_queue):
    for number in range(20):
        wait(alice, 1, seconds=20, guest_id=f"{GUEST_PREFIX}{number}")
    assert is_refused(alice, guest_id=f"{GUEST_PREFIX}new"), "all guests together"
    assert not is_refused(alice)
    assert not is_refused(alice, guest_id="a program's"), "it counts by itself"


def test_who_waits_at_their_own_limit_gets_nobody_elsewhere_refused(alice, mallory, old_queue):
    """Workers may be idle: only its own number keeps that organization's turns waiting."""
    Organization.objects.filter(pk=mallory.organization.pk).update(turns_at_once=1)
    wait(mallory, 1, seconds=60, status="running")
    wait(mallory, 2, seconds=20)
    wait(alice, 10, seconds=5, status="running")
    assert (is_refused(alice), is_refused(mallory)) == (False, True)
    wait(alice, 1, seconds=20)
    assert is_refused(alice), "its turns wait for workers"


def test_a_turn_that_is_queued_anew_makes_no_old_queue(alice, mallory, old_queue):
    """It waited for a person's approval, or ran: workers are not late."""
    wait(alice, 10, seconds=5, status="running")
    wait(mallory, 1, seconds=20)
    assert is_refused(alice)
    Turn.objects.filter(status="queued").update(updated_at=timezone.now())
    assert not is_refused(alice)


def test_a_refused_question_leaves_nothing_behind(alice, assistant, old_queue):
    wait(alice, 3, seconds=20)
    look_now()
    chat = new_chat(alice, assistant=assistant)
    answer = api(alice).post(
        f"/api/v1/chats/{chat.pk}/messages/", {"role": "human", "content": "Hi"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "queue_full")
    assert answer.headers["Retry-After"] == str(congestion.RETRY_SECONDS)
    assert not chat.messages.exists()


def test_one_question_of_many_looks_at_the_queue_beside_its_transaction(
    alice, settings, monkeypatch
):
    settings.AMBER_QUEUE_SECONDS = 10
    monkeypatch.setattr(congestion, "_queue", congestion._Queue())
    monkeypatch.setattr(congestion, "_LOOK_SECONDS", 0.0)
    wait(alice, 3, seconds=20)
    may_look, seen = threading.Event(), threading.Event()
    look = congestion.look_at_queue

    def look_and_say() -> None:
        may_look.wait(20)
        look()
        seen.set()

    monkeypatch.setattr(congestion, "look_at_queue", look_and_say)
    question = new_question(alice)
    with as_tenant(alice.principal.tenant), transaction.atomic():
        for _ in range(congestion.LOOK_EVERY - 1):
            congestion.refuse_over_share(question)
        assert congestion._queue.asked == congestion.LOOK_EVERY - 1, "nobody has looked yet"
        congestion.refuse_over_share(question)
        may_look.set()
        assert seen.wait(20)
        with pytest.raises(RateLimited):
            congestion.refuse_over_share(question)


def test_what_was_seen_long_ago_refuses_nobody(alice, old_queue):
    wait(alice, 3, seconds=20)
    assert is_refused(alice)
    congestion._queue.seen_at -= LONG + congestion.RETRY_SECONDS
    congestion.refuse_over_share(new_question(alice))


@pytest.mark.parametrize("kind", ["USER", "KEY", "ORGANIZATION"])
def test_so_many_streams_may_be_open_and_one_more_when_one_has_ended(
    alice, assistant, settings, kind
):
    setattr(settings, f"AMBER_STREAMS_PER_{kind}", 1)
    key, secret = alice.new_key()
    client = api(key=secret) if kind == "KEY" else api(alice)
    principal = replace(alice.principal, key=key) if kind == "KEY" else alice.principal
    turn = new_turn(new_chat(alice, assistant=assistant), status="completed")
    watchers = open_streams.watchers_of(turn, principal)
    open_streams.note(watchers, 1)
    answer = client.get(of_turn(turn, "events/"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_streams")
    assert answer.headers["Retry-After"] == str(open_streams.RETRY_SECONDS)
    open_streams.note(watchers, -1)
    assert client.get(of_turn(turn, "events/")).status_code == 200
    assert not open_streams._open


def test_guests_take_no_stream_of_their_organizations_people(alice, settings):
    """A visitor can become as many guests as there are streams."""
    settings.AMBER_STREAMS_PER_ORGANIZATION = 1
    person = alice.principal
    guest, another = (replace(person, user=None, role="guest", guest_id=each) for each in "ab")
    watchers = open_streams.watchers_asking(guest)
    open_streams.note(watchers, 1)
    try:
        open_streams.refuse_beyond(open_streams.watchers_asking(person))
        with pytest.raises(RateLimited):
            open_streams.refuse_beyond(open_streams.watchers_asking(another))
    finally:
        open_streams.note(watchers, -1)


def test_a_question_whose_stream_is_refused_is_not_asked(alice, assistant, settings):
    settings.AMBER_STREAMS_PER_USER = 1
    chat = new_chat(alice, assistant=assistant)
    watchers = open_streams.watchers_asking(alice.principal)
    assert watchers == open_streams.watchers_of(new_turn(chat, status="completed"), alice.principal)
    open_streams.note(watchers, 1)
    try:
        answer = api(alice).post(
            f"/api/v1/chats/{chat.pk}/messages/",
            {"role": "human", "content": "Hi"},
            headers={"accept": "text/event-stream"},
        )
    finally:
        open_streams.note(watchers, -1)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_streams")
    assert not chat.messages.exists()
    assert Turn.objects.count() == 1


def test_a_slow_viewer_holds_so_many_bytes_and_then_catches_up(monkeypatch):
    monkeypatch.setattr(viewers, "_QUEUE_BYTES", 1_000)

    async def fill() -> tuple[int, list[StreamEvent | None]]:
        viewer = Viewer(UUID(int=1), b"key")
        most = 0
        for seq in range(1, 100):
            viewers._put(viewer, StreamEvent(seq, "text.delta", b"x" * 100))
            most = max(most, viewer.queued_bytes)
        viewers._put(viewer, StreamEvent(100, "text.delta", b"x" * 100))
        taken = await viewer.take()
        assert viewer.queued_bytes == 0
        return most, taken

    most, taken = asyncio.run(fill())
    assert most <= 1_100
    assert None in taken, "Postgres tells it what it missed"
