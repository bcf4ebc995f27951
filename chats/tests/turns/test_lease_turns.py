import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from amber.lib.database.lease import Fenced
from chats.models import Turn
from chats.tests.rows import expire

LEASE = {"lease_seconds": 20.0}


@pytest.fixture
def turn(alice):
    return Turn.objects.create(organization=alice.organization, user=alice.user)


def claim(turn: Turn, worker: str) -> Any:
    return Turn.objects.claim(turn.pk, worker=worker, **LEASE)


def test_claims_what_is_queued(turn, django_assert_num_queries):
    with django_assert_num_queries(2):
        claimed = claim(turn, "w1")
    assert (claimed.status, claimed.attempt, claimed.fence) == ("running", 1, 1)
    assert claimed.worker == "w1"
    assert timedelta(0) < claimed.lease_until - timezone.now() <= timedelta(seconds=20)
    assert claimed.started_at is not None


def test_claims_nothing_else(turn):
    assert claim(turn, "w1")
    assert claim(turn, "w2") is None
    for status in ("waiting", "completed", "failed", "cancelled"):
        Turn.objects.filter(pk=turn.pk).update(status=status)
        assert claim(turn, "w2") is None


def test_a_second_claim_keeps_the_first_start_and_raises_the_fence(turn):
    first = claim(turn, "w1")
    Turn.objects.filter(pk=turn.pk).update(status="queued")
    second = claim(turn, "w2")
    assert (second.attempt, second.fence) == (2, 2)
    assert second.started_at == first.started_at


def test_only_the_newest_fence_holds(turn):
    first = claim(turn, "w1")
    Turn.objects.filter(pk=turn.pk).update(status="queued")
    second = claim(turn, "w2")
    with transaction.atomic():
        assert Turn.objects.holding(turn.pk, second.fence, "pk") == (turn.pk,)
        with pytest.raises(Fenced):
            Turn.objects.holding(turn.pk, first.fence, "pk")


def test_an_ended_row_is_nobodys(turn):
    claimed = claim(turn, "w1")
    Turn.objects.filter(pk=turn.pk).update(status="cancelled")
    with transaction.atomic(), pytest.raises(Fenced):
        Turn.objects.holding(turn.pk, claimed.fence, "pk")


def test_renews_only_what_the_worker_still_has(alice):
    mine, others, ended = (
        Turn.objects.create(organization=alice.organization, user=alice.user) for _ in range(3)
    )
    for turn, worker in ((mine, "w1"), (others, "w2"), (ended, "w1")):
        claim(turn, worker)
        expire(turn)
    Turn.objects.filter(pk=ended.pk).update(status="completed")
    ids = [mine.pk, others.pk, ended.pk]
    assert Turn.objects.renew(ids, worker="w1", **LEASE) == 1
    assert [turn.pk for turn in Turn.objects.with_expired_lease()] == [others.pk]


def test_only_running_rows_expire(turn):
    expire(turn)
    assert not Turn.objects.with_expired_lease().exists()
    claim(turn, "w1")
    assert not Turn.objects.with_expired_lease().exists()
    expire(turn)
    assert Turn.objects.with_expired_lease().get().pk == turn.pk


@pytest.mark.django_db(transaction=True)
def test_of_many_that_claim_at_once_one_gets_it(turn):
    together = threading.Barrier(6)

    def try_to_claim(number: int) -> bool:
        try:
            together.wait(10)
            return claim(turn, f"w{number}") is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(try_to_claim, range(6))) == [False] * 5 + [True]
    turn.refresh_from_db()
    assert (turn.attempt, turn.fence) == (1, 1)
