"""Another embedding model for a library: found by the old one until all can be found by the new."""

import pytest

from libraries import services
from libraries.ingestion import document_services, intake, leftovers, switching
from libraries.models import Document, DocumentChunk
from libraries.tests.ledger import (
    assert_chunked,
    assert_counted,
    chunks_of,
    given,
    ingest,
    new_document,
    new_library,
    new_model,
    struck,
    text_of,
)
from tests.fixtures.personas import OPERATOR

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def library(alice):
    return new_library(alice)


@pytest.fixture
def upcoming(db):
    return new_model(alias="upcoming", dimensions=32)


def models_in(library):
    rows = DocumentChunk.objects.filter(library=library).order_by()
    return set(rows.values_list("embedding_model_id", flat=True).distinct())


def test_search_goes_on_with_the_old_model_until_all_have_both(library, upcoming, monkeypatch):
    old = library.embedding_model
    documents = [new_document(library, text_of(n)) for n in range(3)]
    ingest()
    services.update_library(library, changes={"embedding_model": "upcoming"}, by=OPERATOR)
    assert (library.embedding_model, library.next_embedding_model) == (old, upcoming)
    states = Document.objects.values_list("status", "stage")
    assert set(states) == {("queued", "ready")}

    def still_found() -> None:
        assert_counted(library)
        assert library.embedding_model == old
        for document in documents:
            assert_chunked(document, old)
            assert len(chunks_of(document, upcoming)) == 0

    for document in documents:
        document.refresh_from_db()
    with struck(monkeypatch, "libraries.ingestion.publication.write_chunks", still_found):
        ingest()
    library.refresh_from_db()
    assert (library.embedding_model, library.next_embedding_model) == (upcoming, None)
    for document in documents:
        document.refresh_from_db()
        assert document.status == "ready"
        assert_chunked(document)
        assert all(len(row.vector) == 32 for row in chunks_of(document))
    assert_counted(library)
    leftovers.erase_leftovers()
    assert models_in(library) == {upcoming.pk}


def test_an_empty_library_changes_at_once(library, upcoming):
    services.update_library(library, changes={"embedding_model": "upcoming"}, by=OPERATOR)
    assert (library.embedding_model, library.next_embedding_model) == (upcoming, None)


def test_what_comes_meanwhile_is_found_before_and_after(library, upcoming):
    new_document(library)
    ingest()
    services.update_library(library, changes={"embedding_model": "upcoming"}, by=OPERATOR)
    late = new_document(library)
    Document.objects.exclude(pk=late.pk).update(status="running")
    ingest()
    library.refresh_from_db()
    assert library.next_embedding_model == upcoming, "one is still being worked on"
    late.refresh_from_db()
    assert_chunked(late, library.embedding_model)
    assert_chunked(late, upcoming)
    assert_counted(library)
    Document.objects.exclude(pk=late.pk).update(status="queued")
    ingest()
    library.refresh_from_db()
    assert library.embedding_model == upcoming
    for document in Document.objects.all():
        assert_chunked(document)
    assert_counted(library)


def test_what_fails_for_the_new_model_holds_the_change_up(library, upcoming, monkeypatch):
    """It can be found by the old one: to change now would lose it."""
    failing, _ = new_document(library), new_document(library)
    ingest()
    services.update_library(library, changes={"embedding_model": "upcoming"}, by=OPERATOR)
    Document.objects.filter(pk=failing.pk).update(status="failed")
    ingest()
    library.refresh_from_db()
    assert library.next_embedding_model == upcoming
    failing.refresh_from_db()
    document_services.retry_document(failing)
    ingest()
    library.refresh_from_db()
    assert library.embedding_model == upcoming


def test_what_never_could_be_found_holds_nothing_up(library, upcoming):
    new_document(library)
    intake.put(library, given("%PDF-1.7 nonsense"))
    ingest()
    services.update_library(library, changes={"embedding_model": "upcoming"}, by=OPERATOR)
    ingest()
    library.refresh_from_db()
    assert library.embedding_model == upcoming


def test_a_change_can_be_called_off(library, upcoming):
    documents = [new_document(library, text_of(n)) for n in range(2)]
    ingest()
    old = library.embedding_model
    services.update_library(library, changes={"embedding_model": "upcoming"}, by=OPERATOR)
    Document.objects.filter(pk=documents[0].pk).update(status="failed", error="broken")
    services.update_library(library, changes={"embedding_model": old.alias}, by=OPERATOR)
    assert (library.embedding_model, library.next_embedding_model) == (old, None)
    assert set(Document.objects.values_list("status", "error")) == {("ready", "")}
    ingest()
    leftovers.erase_leftovers()
    assert models_in(library) == {old.pk}
    assert_counted(library)


def test_a_change_called_off_while_it_is_written_leaves_nothing(library, upcoming, monkeypatch):
    document = new_document(library)
    ingest()
    old = library.embedding_model
    services.update_library(library, changes={"embedding_model": "upcoming"}, by=OPERATOR)

    def call_off() -> None:
        services.update_library(library, changes={"embedding_model": old.alias}, by=OPERATOR)

    with struck(monkeypatch, "libraries.ingestion.publication.write_chunks", call_off):
        ingest()
    document.refresh_from_db()
    assert (document.status, document.stage) == ("ready", "ready")
    assert models_in(library) == {old.pk}


def test_a_third_model_takes_the_place_of_the_second(library, upcoming, monkeypatch):
    third = new_model(alias="third", dimensions=16)
    document = new_document(library)
    ingest()
    services.update_library(library, changes={"embedding_model": "upcoming"}, by=OPERATOR)

    def change_again() -> None:
        services.update_library(library, changes={"embedding_model": "third"}, by=OPERATOR)

    with struck(monkeypatch, "libraries.ingestion.publication.write_chunks", change_again):
        ingest()
    library.refresh_from_db()
    assert (library.embedding_model, library.next_embedding_model) == (third, None)
    leftovers.erase_leftovers()
    assert models_in(library) == {third.pk}
    document.refresh_from_db()
    assert_chunked(document)


def test_a_change_that_nobody_finished_is_finished_by_the_sweep(library, upcoming):
    """The worker died between the last document and the change."""
    new_document(library)
    ingest()
    services.update_library(library, changes={"embedding_model": "upcoming"}, by=OPERATOR)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("libraries.ingestion.stages.switching.finish_switch", bool)
        ingest()
    library.refresh_from_db()
    assert library.next_embedding_model == upcoming
    switching.finish_switches()
    library.refresh_from_db()
    assert library.embedding_model == upcoming
    assert_counted(library)
