"""Test GET turns/{id}/, cancel and manifest, and the states they show."""

import pytest
from django.db import IntegrityError, transaction

from chats.models import ChatMessage, Turn
from chats.tests.rows import (
    ABSENT,
    converse,
    error_of,
    new_chat,
    new_turn,
    of_turn,
    path_of,
    say,
)
from tests.fixtures.personas import api

FIELDS = {
    "id",
    "chat_id",
    "status",
    "queue",
    "error",
    "attempts",
    "usage",
    "finish_reason",
    "waiting_calls",
    "created_at",
    "started_at",
    "ended_at",
}
VERBS = ["", "cancel/", "manifest/", "events/"]


@pytest.fixture
def chat(alice, assistant):
    chat = new_chat(alice, assistant=assistant)
    say(chat)
    return chat


@pytest.fixture
def cancels(monkeypatch):
    heard: list[object] = []
    monkeypatch.setattr("chats.services.announce_cancel", heard.append)
    return heard


def cancel(persona, turn):
    return api(persona).post(of_turn(turn, "cancel/"))


@pytest.mark.parametrize("status", ["queued", "running", "waiting", "completed", "cancelled"])
def test_shows_its_state(alice, chat, status):
    turn = new_turn(chat, status=status, attempt=2, usage={"total_tokens": 3})
    shown = api(alice).get(of_turn(turn)).json()
    assert set(shown) == FIELDS
    assert (shown["status"], shown["attempts"], shown["usage"]) == (status, 2, {"total_tokens": 3})
    assert (shown["chat_id"], shown["finish_reason"]) == (str(chat.pk), None)


@pytest.mark.parametrize("status", ["failed", "incomplete"])
def test_shows_what_went_wrong(alice, chat, status):
    error = {"code": "provider_lost", "message": "It broke off.", "retryable": True}
    turn = new_turn(chat, status=status, error=error)
    assert api(alice).get(of_turn(turn)).json()["error"] == error


def test_the_manifest_is_404_until_it_was_composed(alice, chat):
    turn = new_turn(chat)
    assert error_of(api(alice).get(of_turn(turn, "manifest/"))) == (404, "not_found")
    turn.manifest = {"model": "m"}
    turn.save()
    assert api(alice).get(of_turn(turn, "manifest/")).json() == {"model": "m"}


@pytest.mark.parametrize("status", ["queued", "waiting"])
def test_cancels_at_once_what_nobody_runs(alice, chat, status, cancels):
    turn = new_turn(chat, status=status)
    answer = cancel(alice, turn)
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert answer.json()["ended_at"] is not None
    turn.refresh_from_db()
    assert (turn.status, turn.is_live) == ("cancelled", False)
    assert Turn.objects.claim(turn.pk, worker="w", lease_seconds=20) is None
    assert cancels == []


def test_text_that_was_shown_of_a_queued_turn_is_kept(alice, chat):
    """Released in mid-answer, then cancelled."""
    turn = new_turn(chat, partial_text="It is ")
    assert cancel(alice, turn).json()["status"] == "cancelled"
    assert path_of(chat) == [("human", "Hi"), ("assistant", "It is ")]
    assert ChatMessage.objects.get(role="assistant").turn == turn


def test_asks_the_worker_of_a_running_turn(
    alice, chat, cancels, django_capture_on_commit_callbacks
):
    turn = new_turn(chat, status="running")
    with django_capture_on_commit_callbacks(execute=True):
        answer = cancel(alice, turn)
    assert (answer.status_code, answer.json()["status"]) == (200, "running")
    turn.refresh_from_db()
    assert turn.cancel_requested_at is not None
    assert cancels == [turn.pk]
    first = turn.cancel_requested_at
    assert cancel(alice, turn).status_code == 200
    turn.refresh_from_db()
    assert turn.cancel_requested_at == first


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "cancelled"])
def test_an_ended_turn_stays_as_it_is(alice, chat, status, cancels):
    turn = new_turn(chat, status=status)
    answer = cancel(alice, turn)
    assert (answer.status_code, answer.json()["status"]) == (200, status)
    turn.refresh_from_db()
    assert (turn.status, turn.cancel_requested_at, cancels) == (status, None, [])


def test_after_a_cancel_the_chat_goes_on(alice, chat):
    turn = new_turn(chat)
    cancel(alice, turn)
    address = f"/api/v1/chats/{chat.pk}/messages/"
    assert api(alice).post(address, {"content": "And?"}).status_code == 201


def test_nobody_else_reads_or_cancels(alice, bob, carol, mallory, chat):
    turn = new_turn(chat, manifest={"model": "m"})
    for other, status in ((bob, 404), (carol, 404), (mallory, 404), (None, 401)):
        client = api(other)
        for verb in ("", "manifest/", "events/"):
            assert client.get(of_turn(turn, verb)).status_code == status, verb
        assert cancel(other, turn).status_code == status
    turn.refresh_from_db()
    assert turn.status == "queued"


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_turn_is_404(alice, verb):
    client = api(alice)
    method = client.post if verb == "cancel/" else client.get
    assert error_of(method(f"/api/v1/turns/{ABSENT}/{verb}")) == (404, "not_found")


@pytest.mark.parametrize("given", ["x", "-1", "1.5", "٣", "1 2", str(2**60), "9" * 5_000])
def test_a_last_event_id_that_is_no_number_is_400(alice, chat, given):
    turn = new_turn(chat)
    answer = api(alice).get(of_turn(turn, "events/"), {"last_event_id": given})
    assert error_of(answer) == (400, "invalid_last_event_id")
    if given.isascii():
        header = {"Last-Event-ID": given}
        answer = api(alice).get(of_turn(turn, "events/"), headers=header)
        assert error_of(answer) == (400, "invalid_last_event_id")


def test_events_are_read_only(alice, chat):
    turn = new_turn(chat)
    assert api(alice).post(of_turn(turn, "events/")).status_code in (403, 405)


def test_a_key_that_may_only_write_does_not_read(alice, chat):
    turn = new_turn(chat)
    _, writer = alice.new_key(scopes=["write"])
    _, reader = alice.new_key(scopes=["read"])
    assert api(key=writer).get(of_turn(turn)).status_code == 403
    assert api(key=writer).get(of_turn(turn, "events/")).status_code == 403
    assert api(key=reader).post(of_turn(turn, "cancel/")).status_code == 403
    assert api(key=reader).get(of_turn(turn)).status_code == 200


def test_two_live_turns_of_a_chat_cannot_be(alice, chat):
    converse(chat)
    new_turn(chat)
    with pytest.raises(IntegrityError), transaction.atomic():
        new_turn(chat, status="running")


def test_a_queued_turn_tells_its_place_and_why_it_waits(alice, chat, settings):
    settings.AMBER_TURNS_PER_ORGANIZATION = 1
    first = new_turn(chat, status="queued")
    second = new_turn(new_chat(alice, assistant=chat.assistant), status="queued")
    told = [api(alice).get(of_turn(turn)).json()["queue"] for turn in (first, second)]
    assert told == [{"position": n, "reason": "workers_busy"} for n in (1, 2)]
    first.status = "running"
    first.save()
    told = [api(alice).get(of_turn(turn)).json()["queue"] for turn in (first, second)]
    assert told == [None, {"position": 1, "reason": "organization_limit"}]
