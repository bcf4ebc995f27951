"""Test what becomes of turns whose worker is silent, and of those that no worker was told of."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from chats.models import Turn
from chats.tests.event_streams import stream_of
from chats.tests.rows import expire, new_assistant, new_chat, new_turn, path_of, say
from chats.tests.runs import ask, assert_stored_is_what_was_streamed
from chats.turns import sweep

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lost(alice: Any) -> Any:
    """Return a running turn whose worker is silent."""

    def make(**fields: Any) -> Any:
        chat = new_chat(alice, assistant=new_assistant(alice))
        say(chat)
        fields = {"status": "running", "attempt": 1, "fence": 1, "worker": "w1"} | fields
        turn = new_turn(chat, assistant=chat.assistant, **fields)
        expire(turn)
        return turn

    return make


def test_the_sweep_queues_what_a_lost_worker_held(lost):
    turn = lost(attempt=2, partial_text="half")
    assert sweep.sweep_turns() == [turn.pk]
    turn.refresh_from_db()
    assert (turn.status, turn.attempt, turn.worker) == ("queued", 2, "")
    assert turn.lease_until is None
    assert sweep.sweep_turns() == []


def test_the_sweep_leaves_alone_whoever_renews(lost):
    turn = lost()
    Turn.objects.renew([turn.pk], worker="w1", lease_seconds=20)
    assert sweep.sweep_turns() == []
    turn.refresh_from_db()
    assert turn.status == "running"


@pytest.mark.parametrize(("text", "status"), [("", "failed"), ("half", "incomplete")])
def test_after_too_many_attempts_it_ends_with_its_text(lost, text, status):
    turn = lost(attempt=3, partial_text=text, seq=2_000_005)
    assert sweep.sweep_turns() == []
    turn.refresh_from_db()
    assert (turn.status, turn.error["code"], turn.partial_text) == (status, "worker_lost", "")
    said = [("assistant", "half")] if text else []
    assert path_of(turn.chat) == [("human", "Hi"), *said]
    assert stream_of(turn)[-1]["event"] == f"turn.{status}"
    assert_stored_is_what_was_streamed(turn)
    assert turn.seq > 3_000_000, "above all that a lost worker may have emitted"


def test_a_lost_turn_that_was_cancelled_is_cancelled(lost):
    turn = lost(cancel_requested_at=timezone.now(), partial_text="half")
    assert sweep.sweep_turns() == []
    turn.refresh_from_db()
    assert turn.status == "cancelled"
    assert path_of(turn.chat)[1] == ("assistant", "half")


def test_turns_whose_ring_was_lost_are_found(alice, lost):
    turn = ask(alice)
    lost()
    assert sweep.overdue_turns(10) == []
    assert sweep.overdue_turns(0) == [turn.pk]
    Turn.objects.filter(pk=turn.pk).update(updated_at=timezone.now() - timedelta(seconds=11))
    assert sweep.overdue_turns(10) == [turn.pk]
