"""Who is next: fairness between organizations, what is taken together, what workers lose."""

import threading
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections, transaction
from django.utils import timezone

from amber.lib.workers.leases import RunStoppedError, StopReason
from amber.lib.workers.worker import Worker
from libraries import sweep
from libraries.ingestion import claims, indexing
from libraries.ingestion.claims import claim_batch, running_documents
from libraries.models import Document, DocumentStage, DocumentStatus
from libraries.tests.ledger import (
    beside,
    expire,
    ingest,
    new_document,
    new_library,
    new_model,
    text_of,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch):
    monkeypatch.setattr(running_documents, "_runs", {})


def queue(library: Any, number: int) -> list[UUID]:
    """Rows that wait; nobody will look into them."""
    rows = [
        Document(organization_id=library.organization_id, library=library, name=f"{n}")
        for n in range(number)
    ]
    return [row.pk for row in Document.objects.bulk_create(rows)]


def claimed() -> list[UUID]:
    batch = claim_batch("w1")
    return [document.pk for document in batch.documents] if batch else []


def drop(ids: list[UUID]) -> None:
    running_documents.remove(Document.objects.filter(pk__in=ids))


def finish(ids: list[UUID]) -> None:
    Document.objects.filter(pk__in=ids).update(status=DocumentStatus.READY)
    drop(ids)


def test_a_claim_is_a_new_attempt_under_a_new_fence(alice):
    [document] = claim_batch_of(new_document(new_library(alice)))
    assert (document.status, document.attempt, document.fence) == ("running", 1, 1)
    assert (document.worker, document.not_before) == ("w1", None)
    assert timedelta(0) < document.lease_until - timezone.now() <= timedelta(seconds=20)
    assert document.started_at is not None
    assert running_documents.ids() == [document.pk]
    assert claim_batch("w2") is None


def claim_batch_of(document: Any) -> list[Any]:
    batch = claim_batch("w1")
    assert batch is not None
    assert [each.pk for each in batch.documents] == [document.pk]
    return batch.documents


def test_small_documents_are_taken_together_oldest_first(alice):
    waiting = queue(new_library(alice), 100)
    assert claimed() == waiting[:48]
    assert claimed() == waiting[48:72], "half of what is free"


def test_at_the_end_of_a_queue_something_is_left_for_others(alice):
    waiting = queue(new_library(alice), 40)
    assert claimed() == waiting[:20], "half of what waits"
    assert claimed() == waiting[20:32], "but a few at least"
    assert claimed() == waiting[32:]


def test_few_are_taken_while_another_organization_waits(alice, mallory):
    mine, others = (queue(new_library(persona), 60) for persona in (alice, mallory))
    assert claimed() == mine[:12]
    assert claimed() == others[:12]


def test_a_large_document_goes_alone(alice):
    library = new_library(alice)
    small, large, last = (
        new_document(library, text) for text in ("a", "b" * claims.BATCH_BYTES, "c")
    )
    assert claimed() == [small.pk, last.pk]
    assert claimed() == [large.pk]


def test_what_is_taken_together_is_of_one_library_and_wants_the_same(alice):
    first, second = new_library(alice), new_library(alice)
    mine = queue(first, 2)
    queue(second, 2)
    anew = queue(first, 1)
    Document.objects.filter(pk__in=anew).update(stage=DocumentStage.READY)
    assert claimed() == mine


def test_what_a_worker_was_lost_with_goes_alone(alice):
    """One document that kills its worker must not cost the others their attempts."""
    waiting = queue(new_library(alice), 4)
    Document.objects.filter(pk__in=waiting[:2]).update(attempt=1)
    assert claimed() == waiting[:1]
    assert claimed() == waiting[1:2]
    assert claimed() == waiting[2:]


def test_500_of_one_organization_hide_nobody_elses_one(alice, mallory):
    """With one worker; it is ready as soon as what was begun before."""
    library = new_library(alice)
    many = queue(library, 500)
    Document.objects.update(stage=DocumentStage.PARSED, text="A note.")
    indexing.index_batch(first_batch())
    one = new_document(new_library(mallory))
    while Document.objects.get(pk=one.pk).status != DocumentStatus.READY:
        indexing.index_batch(first_batch())
    ready = Document.objects.filter(library=library, status=DocumentStatus.READY)
    assert ready.count() == 48
    assert claimed()[0] in many


def first_batch() -> claims.Batch:
    batch = claim_batch("w1")
    assert batch is not None
    return batch


def test_an_organization_whose_documents_run_waits_for_one_with_fewer(alice, mallory, bob):
    queue(new_library(alice), 50)
    first = claimed()
    [one] = queue(new_library(mallory), 1)
    assert claimed() == [one]
    assert len(first) == 48


def test_what_waits_for_a_time_or_a_provider_is_passed_over(alice):
    library, resting = new_library(alice), new_library(alice, embedding_model=new_model())
    later, now = queue(library, 2)
    queue(resting, 1)
    Document.objects.filter(pk=later).update(not_before=timezone.now() + timedelta(seconds=60))
    claims.rest_model(resting.embedding_model_id, 60)
    assert claimed() == [now]
    assert not claims.is_anything_waiting()
    Document.objects.filter(pk=later).update(not_before=timezone.now())
    claims.rest_model(resting.embedding_model_id, 0)
    assert claims.is_anything_waiting()
    assert len(claimed()) == 1
    assert len(claimed()) == 1


def test_a_library_on_its_way_to_a_resting_model_is_passed_over(alice):
    library = new_library(alice, next_embedding_model=new_model())
    queue(library, 1)
    claims.rest_model(library.next_embedding_model_id, 60)
    assert claimed() == []


def test_documents_of_a_deleted_library_vanish_quietly(alice):
    library = new_library(alice, deleted_at=timezone.now())
    queue(library, 1)
    assert not claims.is_anything_waiting()
    assert claimed() == []


def test_two_workers_never_get_the_same(alice):
    queue(new_library(alice), 60)
    taken: list[UUID] = []

    def take() -> None:
        try:
            for _ in range(5):
                ids = claimed()
                taken.extend(ids)
                drop(ids)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(taken) == len(set(taken)) == 60


def test_several_threads_index_everything_once(alice, mallory):
    documents = [
        new_document(library, text_of(n))
        for library in (new_library(alice), new_library(mallory))
        for n in range(15)
    ]

    def work() -> None:
        try:
            indexing.index_waiting(Worker("w1"), seconds=60)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    rows = Document.objects.values_list("status", "attempt", "fence")
    assert set(rows) == {("ready", 1, 1)}
    assert len(rows) == len(documents)
    assert running_documents.ids() == []


def test_a_worker_stops_after_its_slice_and_says_that_there_is_more(alice):
    new_document(new_library(alice))
    assert indexing.index_waiting(Worker("w1"), seconds=0) is True
    assert indexing.index_waiting(Worker("w1"), seconds=60) is False


def test_a_worker_on_its_way_out_takes_nothing(alice):
    new_document(new_library(alice))
    assert indexing.index_waiting(Worker("w1", is_draining=True), seconds=60) is True
    assert Document.objects.get().attempt == 0


# -- Leases ----------------------------------------------------------------------------------------


def test_the_keeper_renews_and_learns_what_to_stop(alice):
    library = new_library(alice)
    queue(library, 3)
    kept, cancelled, lost = claimed()
    for pk in (kept, cancelled, lost):
        expire(Document.objects.get(pk=pk))
    Document.objects.filter(pk=cancelled).update(cancel_requested_at=timezone.now())
    Document.objects.filter(pk=lost).update(worker="w2")
    running_documents.renew("w1")
    assert list(Document.objects.with_expired_lease().values_list("pk", flat=True)) == [lost]
    running_documents.check(Document.objects.get(pk=kept))
    for pk, reason in ((cancelled, StopReason.CANCELLED), (lost, StopReason.FENCED)):
        with pytest.raises(RunStoppedError) as stopped:
            running_documents.check(Document.objects.get(pk=pk))
        assert stopped.value.reason is reason


def test_the_sweep_gives_back_what_a_lost_worker_held(alice):
    queue(new_library(alice), 3)
    again, cancelled, worn_out = claimed()
    Document.objects.filter(pk=cancelled).update(cancel_requested_at=timezone.now())
    Document.objects.filter(pk=worn_out).update(attempt=3)
    sweep.sweep_documents()
    assert Document.objects.filter(status="running").count() == 3, "their leases hold"
    for pk in (again, cancelled, worn_out):
        expire(Document.objects.get(pk=pk))
    sweep.sweep_documents()
    states = dict(Document.objects.values_list("pk", "status"))
    assert states == {again: "queued", cancelled: "cancelled", worn_out: "failed"}
    assert "interrupted too often" in Document.objects.get(pk=worn_out).error
    assert Document.objects.get(pk=again).attempt == 1


def test_a_document_that_is_being_written_is_not_swept(alice):
    """Its row is locked by a transaction that is about to end it."""
    [pk] = queue(new_library(alice), 1)
    claimed()
    document = Document.objects.get(pk=pk)
    expire(document)
    with transaction.atomic():
        Document.objects.holding(pk, document.fence)
        beside(sweep.sweep_documents)
    assert Document.objects.get(pk=pk).status == "running"


def test_ingest_leaves_nothing_held(alice):
    new_document(new_library(alice))
    ingest()
    assert running_documents.ids() == []
