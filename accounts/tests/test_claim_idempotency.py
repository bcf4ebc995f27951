from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from accounts.tenancy.idempotency import ABANDONED_AFTER, Replay, begin, release, settle
from amber.lib.errors import Conflict, Invalid
from tests.fixtures.personas import Persona

BODY = {"role": "human", "content": "Hi", "nested": {"b": 1, "a": [1, 2]}}


def claim(
    persona: Persona, *, key: str = "k-1", route: str = "chat-messages", body: object = None
) -> Any:
    return begin(persona.principal, route=route, key=key, body=body or BODY)


def grow_old(**age: float) -> None:
    past = timezone.now() - timedelta(**age)
    IdempotencyRecord.objects.update(created_at=past, updated_at=past)


def test_the_first_answer_is_given_again(alice):
    settle(claim(alice), status=201, answer={"message": {"id": "1"}})
    assert claim(alice) == Replay(201, {"message": {"id": "1"}})
    assert IdempotencyRecord.objects.count() == 1


def test_the_order_of_the_body_does_not_matter(alice):
    settle(claim(alice), status=201, answer={})
    shuffled = {"nested": {"a": [1, 2], "b": 1}, "content": "Hi", "role": "human"}
    assert isinstance(claim(alice, body=shuffled), Replay)


@pytest.mark.parametrize("answered", [True, False])
def test_another_body_is_a_mismatch(alice, answered):
    record = claim(alice)
    if answered:
        settle(record, status=201, answer={})
    with pytest.raises(Conflict) as refusal:
        claim(alice, body={"content": "other"})
    assert refusal.value.code == "idempotency_mismatch"


def test_a_request_still_unanswered_is_in_progress(alice):
    claim(alice)
    with pytest.raises(Conflict) as refusal:
        claim(alice)
    assert refusal.value.code == "idempotency_in_progress"
    assert refusal.value.retry_after_seconds == 1


def test_keys_are_apart_by_person_organization_route_and_credential(alice, bob, mallory):
    claim(alice)
    claim(bob)
    claim(mallory)
    claim(alice, route="regenerate")
    key, _ = alice.new_key()
    by_key = Principal(alice.organization.pk, alice.user, key=key)
    begin(by_key, route="chat-messages", key="k-1", body=BODY)
    assert IdempotencyRecord.objects.count() == 5


def test_a_refused_request_gives_its_key_back(alice):
    release(claim(alice))
    assert isinstance(claim(alice, body={"content": "corrected"}), IdempotencyRecord)


def test_an_answer_is_not_given_back(alice):
    record = claim(alice)
    settle(record, status=201, answer={})
    release(record)
    assert isinstance(claim(alice), Replay)


def test_an_abandoned_claim_is_taken_over_and_its_owner_shut_out(alice):
    claim(alice)
    grow_old(seconds=ABANDONED_AFTER.total_seconds() + 1)
    slow = IdempotencyRecord.objects.get()
    taker = claim(alice)
    assert isinstance(taker, IdempotencyRecord)
    release(slow)
    with pytest.raises(Conflict):
        settle(slow, status=201, answer={"by": "slow"})
    settle(taker, status=201, answer={"by": "taker"})
    assert claim(alice) == Replay(201, {"by": "taker"})


def test_after_its_time_a_key_is_new_again(alice, settings):
    settings.AMBER_IDEMPOTENCY_HOURS = 1
    settle(claim(alice), status=201, answer={})
    grow_old(hours=1, seconds=1)
    assert isinstance(claim(alice, body={"content": "other"}), IdempotencyRecord)
    assert IdempotencyRecord.objects.count() == 1


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "a\0b"])
def test_bad_keys_are_refused(alice, key):
    with pytest.raises(Invalid):
        claim(alice, key=key)


def test_without_a_key_nothing_is_kept(db):
    settle(None, status=201, answer={})
    release(None)
    assert not IdempotencyRecord.objects.exists()


def outcomes_at_once(persona: Persona, times: int) -> list[str]:
    together = Barrier(times)

    def ask(_: int) -> str:
        try:
            together.wait(timeout=10)
            return type(claim(persona)).__name__
        except Conflict as refusal:
            return refusal.code
        finally:
            connection.close()

    with ThreadPoolExecutor(times) as pool:
        return sorted(pool.map(ask, range(times)))


ONE_OF_SIX = ["IdempotencyRecord", *["idempotency_in_progress"] * 5]


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_starts(alice):
    assert outcomes_at_once(alice, 6) == ONE_OF_SIX


@pytest.mark.django_db(transaction=True)
def test_of_many_that_take_over_one_does(alice):
    claim(alice)
    grow_old(minutes=2)
    assert outcomes_at_once(alice, 6) == ONE_OF_SIX
