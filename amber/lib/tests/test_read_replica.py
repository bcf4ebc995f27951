"""Where a read goes: the rules alone. tests/e2e/outages/test_read_replica.py has a real standby."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from uuid import UUID

import pytest
from django.db import OperationalError

from amber.lib.database import replica
from amber.lib.database.tenant import Tenant

ANN = Tenant(UUID(int=1), UUID(int=2))


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


def test_a_replica_must_have_what_the_primary_had_so_long_ago(clock, monkeypatch):
    """At any moment what is needed is at most so old, and the primary is asked seldom."""
    looks = count(1)
    monkeypatch.setattr(replica, "_position", lambda _: next(looks))
    positions = replica.PrimaryPositions()
    needed = []
    for _ in range(100):
        needed.append((clock.now, positions.find_needed(5)))
        clock.now += 0.1
    assert next(looks) <= 100 * 0.1 / replica.LOOK_SECONDS + 2
    assert needed[49][1] == 1
    assert needed[99][1] > 1
    clock.now += 60
    assert positions.find_needed(5) > needed[99][1], "after a pause only what is there now will do"


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A replica that is as far as it must be; what was done, in order."""
    done: list[str] = []

    @contextmanager
    def on_replica() -> Iterator[None]:
        done.append("there")
        yield
        done.append("back")

    monkeypatch.setattr(replica, "_may_use_replica", lambda: True)
    monkeypatch.setattr(replica, "_on_replica", on_replica)
    monkeypatch.setattr(replica, "_position", lambda _: 7)
    monkeypatch.setattr(replica, "_positions", replica.PrimaryPositions())
    monkeypatch.setattr(replica, "_state", replica.ReplicaState())
    return done


def test_reads_there_and_comes_back(configured):
    read = replica.may_be_stale(lambda: configured.append("read"))
    read()
    assert configured == ["there", "read", "back"]


def test_one_that_lags_is_left(configured, monkeypatch):
    monkeypatch.setattr(replica, "_position", lambda name: 8 if name == "pg_current_wal_lsn" else 7)
    replica.may_be_stale(lambda: configured.append("read"))()
    assert configured == ["there", "back", "read"]


def test_one_that_is_lost_is_left_alone_for_a_while(configured, clock):
    def read() -> None:
        configured.append("read")
        if configured.count("read") == 1:
            raise OperationalError

    replica.may_be_stale(read)()
    assert configured == ["there", "read", "read"]
    assert replica._state.is_lost
    clock.now += replica.LOST_SECONDS
    assert not replica._state.is_lost


def test_without_a_replica_nothing_is_noted():
    assert replica.note_command(ANN) is None


def test_a_note_outlives_the_lag(monkeypatch, settings):
    monkeypatch.setattr(replica, "_is_configured", lambda: True)
    settings.AMBER_REPLICA_LAG_SECONDS = 2.5
    command = replica.note_command(ANN)
    assert command is not None
    assert command[:2] == (b"SET", f"amber:written:{ANN.organization_id}:{ANN.user_id}".encode())
    assert command[-1] > 2.5
    assert replica.note_command(None) is None
