"""Test messages: what reaches the broker, what a lost one costs, which jobs become due."""

import base64
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from accounts.models import IdempotencyRecord
from accounts.tenancy.idempotency import forget_idempotency_keys
from amber.lib import redis as amber_redis
from amber.lib.workers.worker import Worker
from chats import tasks
from chats.models import Turn
from chats.queue import enqueue_turn
from chats.tests.rows import ABSENT, new_assistant, new_chat, new_turn, say
from chats.turns import claims
from chats.turns.stateless import erase_stateless
from engine.events import TurnStatus
from operations.maintenance import periodic_jobs
from operations.maintenance.heartbeats import forget_dead_workers
from operations.models import PeriodicJob, WorkerHeartbeat
from operations.queue import enqueue_periodic_job
from tools.calling.call_log import forget_tool_calls
from tools.models import Tool, ToolCallRecord

CHAT_QUEUE, INGEST_QUEUE = "amber:celery:chat", "amber:celery:ingest"


@pytest.fixture(autouse=True)
def silent_queues():
    amber_redis.client().delete(CHAT_QUEUE, INGEST_QUEUE)
    yield
    amber_redis.client().delete(CHAT_QUEUE, INGEST_QUEUE)


def read_queue(queue: str) -> list[tuple[str, list[Any]]]:
    """Return task and arguments of each message in the broker."""
    waiting: Any = amber_redis.client().lrange(queue, 0, -1)
    messages = [json.loads(each) for each in waiting]
    return [(m["headers"]["task"], _arguments(m["body"])) for m in messages]


def _arguments(body: str) -> list[Any]:
    """A message's body is base64 of [args, kwargs, embedded]."""
    positional, _, _ = json.loads(base64.b64decode(body))
    return list(positional)


def test_a_turn_is_enqueued_on_the_chat_queue():
    enqueue_turn(UUID(ABSENT))
    assert read_queue(CHAT_QUEUE) == [("chats.run_turn", [ABSENT])]
    assert read_queue(INGEST_QUEUE) == []


def test_a_periodic_job_is_enqueued_on_the_ingest_queue():
    enqueue_periodic_job("erase_stateless")
    assert read_queue(INGEST_QUEUE) == [("operations.run_periodic_job", ["erase_stateless"])]


def test_a_lost_message_is_no_error(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # nobody listens there
    enqueue_turn(UUID(ABSENT))
    enqueue_periodic_job("erase_stateless")


@pytest.fixture
def runs(monkeypatch):
    """Return what the task runs, and its outcome."""
    outcome: dict[str, Any] = {"status": TurnStatus.COMPLETED, "ran": []}

    def run_next(*, worker: str) -> Any:
        outcome["ran"].append(worker)
        return outcome["status"] if len(outcome["ran"]) < 4 else None

    monkeypatch.setattr("chats.running.runner.run_next", run_next)
    monkeypatch.setattr("chats.turns.claims._order", claims._Order())
    worker = Worker("w1")
    monkeypatch.setattr("chats.tasks.this_worker", lambda: worker)
    return outcome | {"worker": worker, "outcome": outcome}


def test_the_task_runs_the_turn_that_is_next(runs):
    tasks.run_turn(ABSENT)
    assert runs["ran"] == ["w1"]
    assert read_queue(CHAT_QUEUE) == []


def test_while_turns_wait_for_one_to_end_the_task_takes_one_after_another(runs):
    claims.note_waiting()
    tasks.run_turn(ABSENT)
    assert len(runs["ran"]) == 4, "until none may run"
    runs["worker"].is_draining = True
    assert read_queue(CHAT_QUEUE) == []


def test_a_released_turn_is_enqueued_again(runs):
    runs["outcome"]["status"] = TurnStatus.QUEUED
    tasks.run_turn(ABSENT)
    assert read_queue(CHAT_QUEUE) == [("chats.run_turn", [ABSENT])]


def test_a_worker_on_its_way_out_enqueues_the_turn_again(runs):
    runs["worker"].is_draining = True
    tasks.run_turn(ABSENT)
    assert runs["ran"] == []
    assert read_queue(CHAT_QUEUE) == [("chats.run_turn", [ABSENT])]


# -- Periodic jobs ---------------------------------------------------------------------------------


def test_each_periodic_job_is_due_once_per_interval(db):
    assert sorted(periodic_jobs.claim_due_jobs()) == sorted(periodic_jobs.PERIODIC_JOBS)
    assert periodic_jobs.claim_due_jobs() == []
    PeriodicJob.objects.filter(name="erase_stateless").update(
        enqueued_at=timezone.now() - timedelta(seconds=61)
    )
    assert periodic_jobs.claim_due_jobs() == ["erase_stateless"]


def test_every_periodic_job_runs_on_nothing(db):
    for name in periodic_jobs.PERIODIC_JOBS:
        periodic_jobs.run(name)


def stateless(alice: Any, *, ended_seconds_ago: float | None, **fields: Any) -> Turn:
    ended_at = None
    if ended_seconds_ago is not None:
        ended_at = timezone.now() - timedelta(seconds=ended_seconds_ago)
    return Turn.objects.create(
        organization=alice.organization,
        user=alice.user,
        input={"messages": []},
        output={"messages": [{"content": "secret"}]},
        ended_at=ended_at,
        **fields,
    )


def test_stateless_texts_are_erased_after_their_time(alice, settings):
    settings.AMBER_STATELESS_KEEP_SECONDS = 60
    old = stateless(alice, ended_seconds_ago=61, status="completed", partial_text="secret")
    fresh = stateless(alice, ended_seconds_ago=1, status="completed")
    live = stateless(alice, ended_seconds_ago=None, status="running")
    erase_stateless()
    for turn in (old, fresh, live):
        turn.refresh_from_db()
    assert (old.input, old.output, old.partial_text) == (None, None, "")
    assert fresh.output is not None
    assert live.input is not None


def test_turns_of_chats_keep_what_they_have(alice, settings):
    settings.AMBER_STATELESS_KEEP_SECONDS = 0
    chat = new_chat(alice, assistant=new_assistant(alice))
    say(chat)
    turn = new_turn(chat, status="completed", manifest={"model": "m"}, ended_at=timezone.now())
    erase_stateless()
    turn.refresh_from_db()
    assert turn.manifest == {"model": "m"}
    assert chat.messages.count() == 1


def test_old_keys_and_dead_workers_are_forgotten(alice):
    for age_hours, name in ((25, "old"), (1, "new")):
        record = IdempotencyRecord.objects.create(
            organization=alice.organization, principal="p", route="r", key=name, body_sha256="0"
        )
        past = timezone.now() - timedelta(hours=age_hours)
        IdempotencyRecord.objects.filter(pk=record.pk).update(created_at=past)
        WorkerHeartbeat.objects.create(
            worker=name, queue="chat", beat_at=past + timedelta(minutes=5)
        )
    forget_idempotency_keys()
    forget_dead_workers()
    assert IdempotencyRecord.objects.get().key == "new"
    assert WorkerHeartbeat.objects.get().worker == "new"


def test_the_log_of_tool_calls_goes_after_its_time(alice, settings):
    settings.AMBER_TOOL_LOG_DAYS = 2
    mine = {"organization": alice.organization, "user": alice.user}
    tool = Tool.objects.create(**mine, name="T", tried_at=timezone.now())
    for age_days in (1, 3):
        line = ToolCallRecord.objects.create(
            **mine, tool=tool, function=f"{age_days}", outcome="ok", latency_ms=1
        )
        past = timezone.now() - timedelta(days=age_days)
        ToolCallRecord.objects.filter(pk=line.pk).update(created_at=past)
    forget_tool_calls()
    assert ToolCallRecord.objects.get().function == "1"
