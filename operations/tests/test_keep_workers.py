"""Test worker maintenance: no fault of a part ends it, no slow part lets leases run out."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import MultipleObjectsReturned
from django.db import OperationalError, connection
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest

from amber.lib import redis as amber_redis
from amber.lib.workers import leases
from amber.lib.workers.guard import fault_counts
from amber.lib.workers.worker import Worker
from amber.processes import wait_until
from amber.web import metrics
from chats.models import Turn
from chats.running.stopping import running_turns
from chats.tests.rows import new_assistant, new_chat, new_turn
from chats.turns import endings, sweep
from operations.maintenance import periodic_jobs
from operations.maintenance.worker import WorkerMaintenance
from operations.models import PeriodicJob, WorkerHeartbeat
from operations.tasks import run_periodic_job

WAIT_SECONDS = 20
LEASE_SECONDS = 2.0


@pytest.fixture(autouse=True)
def no_faults_yet():
    amber_redis.client().delete(amber_redis.key("maintenance-faults", None))


@pytest.fixture
def quick(settings):
    settings.AMBER_SWEEP_SECONDS = 0.05
    settings.AMBER_LEASE_SECONDS = LEASE_SECONDS


class Recorder:
    """A `QueueMaintenance` whose parts are the test's."""

    def __init__(self, sweeps: Mapping[str, Callable[[], None]]) -> None:
        self.sweeps = sweeps

    def begin(self) -> None: ...

    def drain(self) -> None: ...


@pytest.fixture
def kept() -> Iterator[Callable[[Recorder], None]]:
    """Return a function that starts worker maintenance, whose threads end with the test."""
    is_over = threading.Event()
    threads: list[threading.Thread] = []

    def start(queue_maintenance: Recorder) -> None:
        threads.extend(
            WorkerMaintenance(
                Worker("w1"), queue="chat", queue_maintenance=queue_maintenance
            ).start(is_over)
        )

    yield start
    is_over.set()
    for thread in threads:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


class RecordedRuns:
    """Stands for the `Runs` of a model."""

    def __init__(self, renew: Callable[[], None]) -> None:
        self._renew = renew

    def renew(self, worker: str) -> None:
        self._renew()


def told_to_prometheus() -> str:
    registry = CollectorRegistry()
    registry.register(metrics.TurnCollector())
    return generate_latest(registry).decode()


def duplicates() -> Any:
    raise MultipleObjectsReturned("get() returned more than one PeriodicJob -- it returned 2!")


@pytest.mark.django_db(transaction=True)
def test_no_fault_of_a_part_ends_the_others(kept, quick, caplog, monkeypatch):
    renewals, swept = [], []
    both = [RecordedRuns(duplicates), RecordedRuns(lambda: renewals.append(1))]
    monkeypatch.setattr(leases, "_all_runs", both)
    kept(Recorder({"broken": duplicates, "whole": lambda: swept.append(1)}))
    assert wait_until(lambda: len(swept) > 2 < len(renewals), timeout_seconds=WAIT_SECONDS)
    counted = fault_counts()
    assert set(counted) == {"broken", "renew_leases"}
    assert min(counted.values()) > 1
    assert "MultipleObjectsReturned" in caplog.text, "with its trace"


@pytest.mark.django_db(transaction=True)
def test_an_outage_is_survived_too(kept, quick, settings, monkeypatch):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # nobody listens: nothing can be counted either
    swept = []

    def away() -> None:
        amber_redis.client().ping()

    monkeypatch.setattr(leases, "_all_runs", [RecordedRuns(away)])
    kept(Recorder({"broken": away, "whole": lambda: swept.append(1)}))
    assert wait_until(lambda: len(swept) > 2, timeout_seconds=WAIT_SECONDS)


@pytest.mark.django_db(transaction=True)
def test_faults_are_told_at_metrics(monkeypatch):
    absent = periodic_jobs.Schedule(60, "operations.maintenance.periodic_jobs.absent")
    monkeypatch.setitem(periodic_jobs.PERIODIC_JOBS, "broken_job", absent)
    run_periodic_job("broken_job")
    said = told_to_prometheus()
    assert 'amber_maintenance_faults_total{part="broken_job"} 1.0' in said


def test_a_periodic_job_hindered_by_an_outage_leaves_no_trace(db, monkeypatch, caplog):
    """Tests of whole processes take a trace in the log for a fault of Amber's own."""

    def away() -> None:
        raise OperationalError("terminating connection due to administrator command")

    monkeypatch.setattr(periodic_jobs, "run", lambda name: away())
    run_periodic_job("erase_people")
    assert "maintenance_hindered" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_periodic_job_that_took_too_long_is_told_from_an_outage(db, monkeypatch, caplog):
    def wait(_: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 10; SELECT pg_sleep(20)")

    monkeypatch.setattr(periodic_jobs, "run", wait)
    run_periodic_job("forget_usage")
    assert "QueryCanceled" in caplog.text
    assert "Traceback" not in caplog.text


def test_metrics_are_told_without_redis(db, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    said = told_to_prometheus()
    assert "amber_turns_live" in said
    assert "amber_maintenance_faults" not in said


def test_rows_that_are_there_twice_stop_no_periodic_job(db):
    """As after a restore under a running worker, which broke the unique index."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE chats_chore DROP CONSTRAINT chats_chore_name_key")
    PeriodicJob.objects.bulk_create(
        [PeriodicJob(name="erase_people"), PeriodicJob(name="erase_people")]
    )
    assert sorted(periodic_jobs.claim_due_jobs()) == sorted(periodic_jobs.PERIODIC_JOBS)
    assert periodic_jobs.claim_due_jobs() == []


def test_a_job_that_cannot_be_taken_stops_no_other(db, monkeypatch):
    real = periodic_jobs._claim_job

    def take(name: str, every_seconds: int) -> bool:
        return duplicates() if name == "erase_people" else real(name, every_seconds)

    monkeypatch.setattr(periodic_jobs, "_claim_job", take)
    assert set(periodic_jobs.claim_due_jobs()) == set(periodic_jobs.PERIODIC_JOBS) - {
        "erase_people"
    }
    assert fault_counts() == {"enqueue_due_jobs": 1}


def test_a_turn_that_cannot_be_given_back_stops_no_other(alice, monkeypatch):
    past = timezone.now() - timedelta(seconds=1)
    chats = [new_chat(alice, assistant=new_assistant(alice)) for _ in range(2)]
    poison, other = (new_turn(c, status="running", attempt=1, lease_until=past) for c in chats)
    real = endings.lock_turn

    def lock(turn_id: Any, *others: Any) -> Any:
        return duplicates() if turn_id == poison.pk else real(turn_id, *others)

    monkeypatch.setattr(sweep, "lock_turn", lock)
    assert sweep.sweep_turns() == [other.pk]
    assert fault_counts() == {"sweep_turns": 1}


# -- Leases ----------------------------------------------------------------------------------------


@pytest.fixture
def held(alice: Any, quick: None) -> Iterator[None]:
    """Let this process run a turn."""
    turn = Turn.objects.create(organization=alice.organization, user=alice.user)
    claimed = Turn.objects.claim(turn.pk, worker="w1", lease_seconds=LEASE_SECONDS)
    assert claimed is not None
    with running_turns.listing([claimed]):
        yield


@contextmanager
def exhausted_pool() -> Iterator[None]:
    """Use every connection that this process may have."""
    pool: Any = getattr(connection, "pool")  # noqa: B009  (of Postgres' wrapper)
    taken = []
    while pool.get_stats().get("pool_available", 0) or pool._nconns < pool.max_size:
        taken.append(pool.getconn(timeout=10))
    try:
        yield
    finally:
        for each in taken:
            pool.putconn(each)


@pytest.mark.django_db(transaction=True)
def test_a_sweep_that_hangs_lets_no_lease_run_out(kept, held):
    begun, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        go_on.wait(WAIT_SECONDS)

    kept(Recorder({"slow": hang}))
    try:
        assert begun.wait(WAIT_SECONDS)
        time.sleep(LEASE_SECONDS * 1.5)
        assert not Turn.objects.with_expired_lease().exists()
    finally:
        go_on.set()


@pytest.mark.django_db(transaction=True)
def test_a_full_pool_lets_no_lease_run_out(kept, held):
    with exhausted_pool():
        kept(Recorder({}))
        time.sleep(LEASE_SECONDS * 1.5)
        assert not Turn.objects.with_expired_lease().exists()


@pytest.mark.django_db(transaction=True)
def test_leases_are_renewed_again_after_a_fault(held, kept, monkeypatch):
    """The connection that broke is not kept."""
    pids: list[int] = []

    def watched() -> None:
        pids.append(connection.connection.info.backend_pid if connection.connection else 0)
        running_turns.renew("w1")

    monkeypatch.setattr(leases, "_all_runs", [RecordedRuns(watched)])
    kept(Recorder({}))
    assert wait_until(lambda: any(pids[-1:]), timeout_seconds=WAIT_SECONDS)
    first = pids[-1]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [first])
    assert wait_until(lambda: pids[-1] not in (0, first), timeout_seconds=WAIT_SECONDS)
    assert not Turn.objects.with_expired_lease().exists()


@pytest.mark.django_db(transaction=True)
def test_the_worker_shows_itself_whatever_else_fails(kept, quick):
    worker = Worker("w1", consuming_at=time.monotonic())
    keeper_of = WorkerMaintenance(
        worker, queue="chat", queue_maintenance=Recorder({"broken": duplicates})
    )
    keeper_of._tick()
    assert WorkerHeartbeat.objects.get().worker == "w1"
