"""Test a clock that is set back ten minutes: turns end, and nothing waits until it catches up.

To a clock that was set back a row's time lies ahead: so the tests move the rows.
"""

import time
from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from amber.processes import wait_until
from chats.models import Turn
from chats.tests.runs import ask, assert_stored_is_what_was_streamed, run, running, text_of
from chats.turns import sweep
from engine.events import TurnStatus
from libraries.models import Document, Repository
from operations.maintenance import periodic_jobs
from operations.maintenance.heartbeats import consuming_queues
from operations.models import PeriodicJob, WorkerHeartbeat

pytestmark = pytest.mark.django_db(transaction=True)

BACK = timedelta(minutes=10)


def test_a_turn_ends_though_the_workers_clock_is_set_back(alice, new_model, monkeypatch):
    """In mid-answer, in the process that runs it."""
    new_model()
    turn = ask(alice, content="[[fake tokens=40 itl=20]]")
    real_now, real_time = timezone.now, time.time
    with running(turn) as this:
        this.wait_for(lambda: text_of(turn))
        monkeypatch.setattr(timezone, "now", lambda: real_now() - BACK)
        monkeypatch.setattr(time, "time", lambda: real_time() - BACK.total_seconds())
    assert turn.status == TurnStatus.COMPLETED
    assert_stored_is_what_was_streamed(turn)


def test_the_lease_of_a_lost_worker_runs_out_all_the_same(alice, new_model, settings):
    settings.AMBER_LEASE_SECONDS = 1.0
    new_model()
    turn = ask(alice)
    Turn.objects.claim(turn.pk, worker="dead", lease_seconds=1.0)
    Turn.objects.update(lease_until=F("lease_until") + BACK)
    assert wait_until(lambda: sweep.sweep_turns() == [turn.pk], timeout_seconds=10)
    assert run(turn, "w2") == TurnStatus.COMPLETED


def test_a_lease_that_can_be_is_left_as_it_is(alice, settings):
    """Another worker may be set to longer ones."""
    settings.AMBER_LEASE_SECONDS = 20
    turn = ask(alice)
    Turn.objects.claim(turn.pk, worker="w1", lease_seconds=39)
    before = Turn.objects.get().lease_until
    sweep.sweep_turns()
    assert Turn.objects.get().lease_until == before


@pytest.mark.parametrize("kind", [Turn, Document, Repository])
def test_everything_that_is_leased_has_its_lease_cut(kind, alice):
    assert kind.objects.shorten_leases(20) == 0, "a statement that Postgres understands"


def test_a_turn_whose_ring_was_lost_is_rung_for(alice):
    turn = ask(alice)
    assert sweep.overdue_turns(10) == []
    Turn.objects.update(updated_at=F("updated_at") + BACK)
    assert sweep.overdue_turns(10) == [turn.pk]


def test_periodic_jobs_are_due_again():
    periodic_jobs.claim_due_jobs()
    PeriodicJob.objects.update(enqueued_at=F("enqueued_at") + BACK)
    due = periodic_jobs.claim_due_jobs()
    assert "digest_turns" in due
    assert "expire_old_chats" not in due, "an hour apart: the ten minutes do not matter"
    assert periodic_jobs.claim_due_jobs() == []


def test_a_dead_worker_does_not_consume_until_then():
    WorkerHeartbeat.objects.create(worker="w1", queue="chat", beat_at=timezone.now())
    assert consuming_queues() == {"chat"}
    WorkerHeartbeat.objects.update(beat_at=F("beat_at") + BACK)
    assert consuming_queues() == set()
