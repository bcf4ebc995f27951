"""What `amber.lib.database.lease` and `amber.lib.workers.leases` promise of every kind of row."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone

from amber.lib.database.lease import LEASE_FIELDS, update_leased
from amber.lib.workers.guard import fault_counts
from amber.lib.workers.leases import Run, Runs, RunStoppedError, StopReason, sweep_expired
from chats.models import Chat, Turn
from libraries.models import Document, Library, Repository
from libraries.tests.ledger import beside, new_library
from public_api.models import Webhook, WebhookDelivery
from tests.fixtures.personas import Persona

pytestmark = pytest.mark.django_db(transaction=True)


def new_turn(alice: Persona) -> Turn:
    chat = Chat.objects.create(organization=alice.organization, user=alice.user)
    return Turn.objects.create(organization=alice.organization, user=alice.user, chat=chat)


def new_document(alice: Persona) -> Document:
    return Document.objects.create(organization=alice.organization, library=new_library(alice))


def new_import(alice: Persona) -> Repository:
    return Repository.objects.create(organization=alice.organization, library=new_library(alice))


def new_delivery(alice: Persona) -> WebhookDelivery:
    of_alice = {"organization": alice.organization}
    webhook = Webhook.objects.create(**of_alice, user=alice.user, events=["turn.completed"])
    return WebhookDelivery.objects.create(
        **of_alice, webhook=webhook, turn_id=webhook.pk, payload={}, due_at=timezone.now()
    )


KINDS = {
    Turn: (new_turn, "completed"),
    Document: (new_document, "ready"),
    Repository: (new_import, "ready"),
    WebhookDelivery: (new_delivery, "delivered"),
}


@pytest.fixture(params=KINDS, ids=lambda model: model.__name__)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def claimed(kind: Any, alice: Persona) -> Callable[[], Any]:
    """Return a function that makes a row and claims it."""

    def claim_new() -> Any:
        return claim(KINDS[kind][0](alice))

    return claim_new


@pytest.fixture
def runs(kind: Any, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setattr("amber.lib.workers.leases._all_runs", [])
    return Runs(kind)


def claim(row: Any) -> Any:
    found = type(row).objects.claim(row.pk, worker="w1", lease_seconds=20)
    assert found is not None
    return found


def expire(*rows: Any) -> None:
    ids = [row.pk for row in rows]
    past = timezone.now() - timedelta(seconds=1)
    type(rows[0]).objects.filter(pk__in=ids).update(lease_until=past)


# -- Renewed ---------------------------------------------------------------------------------------


def test_renewal_keeps_what_is_held_and_stops_what_was_lost(kind, claimed, runs):
    kept, others, fenced, ended = rows = [claimed() for _ in range(4)]
    expire(*rows)
    for row in rows:
        runs.add(row)
    kind.objects.filter(pk=others.pk).update(worker="w2")
    kind.objects.filter(pk=fenced.pk).update(fence=99)
    kind.objects.end(ended, KINDS[kind][1])
    runs.renew("w1")
    reasons = [runs.stop_reason(row) for row in rows]
    assert reasons == [None, StopReason.FENCED, StopReason.FENCED, StopReason.FENCED]
    assert {row.pk for row in kind.objects.with_expired_lease()} == {others.pk}
    runs.check(kept)
    with pytest.raises(RunStoppedError) as stopped:
        runs.check(others)
    assert stopped.value.reason is StopReason.FENCED


@pytest.mark.parametrize("kind", [Turn, Document, Repository], indirect=True)
def test_renewal_stops_what_is_unwanted(kind, claimed, runs):
    row = claimed()
    runs.add(row)
    runs.renew("w1")
    assert runs.stop_reason(row) is None
    if kind is Repository:
        Library.objects.filter(pk=row.library_id).update(deleted_at=timezone.now())
    else:
        kind.objects.filter(pk=row.pk).update(cancel_requested_at=timezone.now())
    runs.renew("w1")
    assert runs.stop_reason(row) is StopReason.CANCELLED


def test_a_lost_row_that_is_claimed_here_again_is_two_runs(kind, claimed, runs):
    old = claimed()
    runs.add(old)
    kind.objects.give_back(old)
    new = claim(old)
    runs.add(new)
    expire(new)
    runs.renew("w1")
    assert (runs.stop_reason(old), runs.stop_reason(new)) == (StopReason.FENCED, None)
    runs.remove([old])
    assert runs.ids() == [new.pk]
    assert not kind.objects.with_expired_lease().exists()


def test_without_runs_nothing_is_asked(runs, django_assert_num_queries):
    with django_assert_num_queries(0):
        runs.renew("w1")


def test_the_first_reason_counts_and_interrupts_once():
    interrupted = []

    class Recorded(Run):
        def interrupt(self) -> None:
            interrupted.append(self.stopped_as)

    run = Recorded()
    run.stop(StopReason.RELEASED)
    run.stop(StopReason.CANCELLED)
    assert run.stopped_as is StopReason.RELEASED
    assert interrupted == [StopReason.RELEASED]


# -- Written and left ------------------------------------------------------------------------------


def lease_of(row: Any) -> tuple[Any, ...]:
    row = type(row).objects.get(pk=row.pk)
    return row.status, row.worker, row.lease_until, row.attempt


def test_what_a_running_row_stores_leaves_its_lease_to_renewal(kind, claimed):
    row = claimed()
    kind.objects.renew([row.pk], worker="w1", lease_seconds=3_600)
    renewed = lease_of(row)
    assert update_leased(row, "error", "updated_at", where={"fence": row.fence})
    assert lease_of(row) == renewed
    for name in LEASE_FIELDS:
        with pytest.raises(TypeError):
            update_leased(row, name)


def test_a_row_that_leaves_its_worker_has_no_lease(kind, claimed):
    ended = KINDS[kind][1]
    first, second, third, fourth, fifth = (claimed() for _ in range(5))
    kind.objects.end(first, ended)
    assert lease_of(first) == (ended, "", None, 1)
    assert kind.objects.get(pk=first.pk).ended_at is not None
    kind.objects.release(second)
    assert lease_of(second) == ("queued", "", None, 0)
    kind.objects.give_back(third)
    assert lease_of(third) == ("queued", "", None, 1)
    fourth.leave(ended)
    fifth.leave("queued", is_counted=False)
    for row in (fourth, fifth):
        update_leased(row, "status", "updated_at")
    assert lease_of(fourth) == (ended, "", None, 1)
    assert lease_of(fifth) == ("queued", "", None, 0)


def test_nothing_leaves_another_worker(kind, claimed):
    row = claimed()
    kind.objects.filter(pk=row.pk).update(fence=99)
    before = lease_of(row)
    kind.objects.end(row, KINDS[kind][1])
    kind.objects.release(row)
    kind.objects.give_back(row)
    assert lease_of(row) == before


# -- Swept -----------------------------------------------------------------------------------------


def give_back_of(kind: Any) -> Callable[[UUID], bool]:
    def give_back(pk: UUID) -> bool:
        row = kind.objects.lock_expired(pk)
        if row is not None:
            kind.objects.give_back(row)
        return row is not None

    return give_back


def test_the_sweep_gives_back_what_expired_and_nothing_else(kind, claimed):
    lost, kept = claimed(), claimed()
    expire(lost)
    assert sweep_expired("sweep", kind, give_back_of(kind)) == [lost.pk]
    assert lease_of(lost) == ("queued", "", None, 1)
    assert lease_of(kept)[0] == "running"
    assert sweep_expired("sweep", kind, give_back_of(kind)) == []


def test_a_row_that_cannot_be_given_back_stops_no_other(kind, claimed):
    poison, other = claimed(), claimed()
    expire(poison, other)
    before = fault_counts().get("sweep_broken", 0)

    def give_back(pk: UUID) -> bool:
        given = give_back_of(kind)(pk)
        if pk == poison.pk:
            raise ValueError("after it was written")
        return given

    assert sweep_expired("sweep_broken", kind, give_back) == [other.pk]
    assert lease_of(poison)[0] == "running", "its transaction was rolled back"
    assert fault_counts()["sweep_broken"] == before + 1


def test_a_row_that_is_renewed_or_written_meanwhile_is_passed_over(kind, claimed):
    row = claimed()
    expire(row)
    with transaction.atomic():
        kind.objects.holding(row.pk, row.fence)
        beside(lambda: sweep_expired("sweep", kind, give_back_of(kind)))
    assert lease_of(row)[0] == "running"

    def renew_and_give_back(pk: UUID) -> bool:
        kind.objects.renew([pk], worker="w1", lease_seconds=20)
        return give_back_of(kind)(pk)

    assert sweep_expired("sweep", kind, renew_and_give_back) == []
    assert lease_of(row)[0] == "running"


def test_one_process_looks_at_a_time(kind, claimed):
    """The others return at once, and look at other tables."""
    row = claimed()
    expire(row)
    locked, go_on = threading.Event(), threading.Event()

    def hold_the_lock() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_advisory_xact_lock(%s, hashtext(%s))",
                    [0x616D6265, kind._meta.db_table],
                )
                locked.set()
                go_on.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=hold_the_lock)
    thread.start()
    try:
        assert locked.wait(30)
        assert sweep_expired("sweep", kind, give_back_of(kind)) == []
    finally:
        go_on.set()
        thread.join(30)
    assert sweep_expired("sweep", kind, give_back_of(kind)) == [row.pk]
