"""From bytes to what can be found: every stage, every fault, every moment to stop it."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from amber.lib.workers.leases import StopReason
from libraries import services, sweep
from libraries.chunking.chunker import chunk
from libraries.embedding.store import embed_texts
from libraries.ingestion import document_services, indexing, intake, leftovers, publication
from libraries.ingestion.claims import claim_batch, running_documents
from libraries.models import Document, DocumentChunk, File
from libraries.tests.ledger import (
    Killed,
    assert_chunked,
    assert_counted,
    assert_ready,
    chunks_of,
    expire,
    given,
    ingest,
    kill,
    new_document,
    new_library,
    new_model,
    struck,
    text_of,
)
from tests.fixtures.personas import OPERATOR
from tests.fixtures.provider import fake_provider

__all__ = ["fake_provider"]

pytestmark = pytest.mark.django_db(transaction=True)

STEPS = {
    "parsing": "libraries.ingestion.stages.parse",
    "chunking": "libraries.ingestion.stages.chunk",
    "embedding": "libraries.ingestion.stages.embed_texts",
    "publishing": "libraries.ingestion.publication.write_chunks",
}


@pytest.fixture(autouse=True)
def without_patience(settings):
    settings.AMBER_PROVIDER_RETRIES = 0


@pytest.fixture
def library(alice):
    return new_library(alice)


def test_a_text_becomes_ready_with_all_its_chunks(library):
    text = text_of(1)
    document = new_document(library, text)
    assert (document.status, document.stage) == ("queued", "stored")
    ingest()
    assert_ready(document, text)
    assert_counted(library)
    assert document.progress == {"chunks": library.chunk_count, "embedded": library.chunk_count}
    assert library.chunk_count > 5
    assert set(document.timings) == {"parsed", "chunked", "embedded", "ready"}
    assert (document.attempt, document.error) == (1, "")
    assert document.ended_at >= document.started_at


def test_many_at_once_are_told_apart(library, alice):
    other = new_library(alice, chunk_tokens=100)
    texts = {
        new_document(lib, text_of(n)).pk: text_of(n) for n in range(9) for lib in [library, other]
    }
    ingest()
    for document in Document.objects.all():
        assert_ready(document, texts[document.pk])
    assert_counted(library)
    assert_counted(other)


def test_what_cannot_be_read_fails_alone_and_says_why(library):
    good = [new_document(library) for _ in range(2)]
    bad = intake.put(library, given("%PDF-1.7 nonsense", name="a.pdf")).document
    ingest()
    bad.refresh_from_db()
    assert (bad.status, bad.stage) == ("failed", "stored")
    assert bad.error
    assert bad.ended_at is not None
    assert not chunks_of(bad)
    for document in good:
        document.refresh_from_db()
        assert document.status == "ready"


def test_a_file_that_is_gone_fails_in_plain_words(library):
    document = new_document(library)
    File.objects.filter(pk=document.file_id).delete()
    ingest()
    document.refresh_from_db()
    assert (document.status, document.error) == (
        "failed",
        "The file this document was made from is gone. Upload it again.",
    )


# -- Killed, in every stage ----------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_workers_document_is_finished_by_the_next(library, monkeypatch, step):
    text = text_of(1)
    document = new_document(library, text)
    with struck(monkeypatch, STEPS[step], kill), pytest.raises(Killed):
        ingest()
    assert not chunks_of(document)
    expire(document)
    sweep.sweep_documents()
    parsed_again = kill if step != "parsing" else do_nothing
    with struck(monkeypatch, STEPS["parsing"], parsed_again):
        ingest()
    assert_ready(document, text)
    assert document.attempt == 2
    assert_counted(library)


def do_nothing() -> None:
    pass


def test_what_kills_every_worker_is_given_up(library, monkeypatch):
    document = new_document(library)
    for _ in range(3):
        with struck(monkeypatch, STEPS["parsing"], kill), pytest.raises(Killed):
            ingest()
        expire(document)
        sweep.sweep_documents()
    document.refresh_from_db()
    assert (document.status, document.attempt) == ("failed", 3)
    assert document.error.startswith("Indexing was interrupted too often")


def test_a_worker_that_was_only_slow_writes_nothing(library, monkeypatch):
    """Another takes the document over while the first one is about to publish."""
    text = text_of(1)
    document = new_document(library, text)

    def take_over() -> None:
        expire(document)
        sweep.sweep_documents()
        second = claim_batch("w2")
        assert second is not None
        indexing.index_batch(second)

    with struck(monkeypatch, STEPS["publishing"], take_over):
        ingest()
    assert_ready(document, text)
    assert document.fence == 2
    assert_counted(library)


# -- Stopped by people ---------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_cancelling_stops_it_at_the_next_step(library, monkeypatch, step):
    document = new_document(library)
    with struck(monkeypatch, STEPS[step], lambda: document_services.cancel_document(document)):
        ingest()
    document.refresh_from_db()
    assert (document.status, document.error) == ("cancelled", "")
    assert document.ended_at is not None
    assert not chunks_of(document)
    assert_counted(library)
    document_services.retry_document(document)
    ingest()
    assert_chunked(Document.objects.get())


@pytest.mark.parametrize("step", STEPS)
def test_deleting_leaves_nothing_and_the_others_go_on(library, monkeypatch, step, media):
    text = text_of(1)
    doomed, other = new_document(library), new_document(library, text)
    with struck(monkeypatch, STEPS[step], lambda: document_services.delete_document(doomed)):
        ingest()
    assert Document.objects.get().pk == other.pk
    assert_ready(other, text)
    assert not DocumentChunk.objects.exclude(document=other).exists()
    assert len(media()) == 1
    assert_counted(library)


@pytest.mark.parametrize("step", STEPS)
def test_deleting_the_library_leaves_nothing_and_the_worker_lives(alice, monkeypatch, step, media):
    library, other = new_library(alice), new_library(alice)
    doomed = [new_document(library) for _ in range(3)]
    document = new_document(other)
    with struck(monkeypatch, STEPS[step], lambda: services.delete_library(library, by=OPERATOR)):
        ingest()
    leftovers.erase_leftovers()
    assert Document.objects.get().pk == document.pk
    document.refresh_from_db()
    assert document.status == "ready"
    assert not DocumentChunk.objects.filter(document__in=[d.pk for d in doomed]).exists()
    assert len(media()) == 1
    assert File.objects.count() == 1


def test_a_worker_on_its_way_out_gives_back_uncounted(library, monkeypatch):
    document = new_document(library)

    def drain() -> None:
        running_documents.stop_all(StopReason.RELEASED)

    with struck(monkeypatch, STEPS["chunking"], drain):
        batch = claim_batch("w1")
        assert batch is not None
        indexing.index_batch(batch)
    document.refresh_from_db()
    assert (document.status, document.stage, document.attempt) == ("queued", "chunked", 0)
    ingest()
    document.refresh_from_db()
    assert (document.status, document.attempt) == ("ready", 1)


def test_so_does_one_that_is_writing_many_chunks(library, monkeypatch):
    monkeypatch.setattr(publication, "PIECE_ROWS", 2)
    document = new_document(library)
    with struck(
        monkeypatch,
        STEPS["publishing"],
        lambda: running_documents.stop_all(StopReason.RELEASED),
    ):
        batch = claim_batch("w1")
        assert batch is not None
        indexing.index_batch(batch)
    document.refresh_from_db()
    assert (document.status, document.stage, document.attempt) == ("queued", "embedded", 0)
    ingest()
    assert_chunked(Document.objects.get())


# -- Providers -----------------------------------------------------------------------------------


def model_that(fake_provider: Any, upstream_id: str, **fields: Any) -> Any:
    fields.setdefault("dimensions", 64)
    return new_model(upstream_id, base_url=fake_provider.base_url, **fields)


def test_vectors_come_from_the_provider(alice, fake_provider):
    library = new_library(alice, embedding_model=model_that(fake_provider, "fake-embedding"))
    text = text_of(1)
    document = new_document(library, text)
    ingest()
    assert_ready(document, text)


@pytest.mark.parametrize("fault", ["fake-429-retry-after", "fake-503"])
def test_a_busy_provider_is_waited_for(alice, fake_provider, fault):
    library = new_library(alice, embedding_model=model_that(fake_provider, fault))
    document = new_document(library)
    ingest()
    document.refresh_from_db()
    assert (document.status, document.stage, document.attempt) == ("queued", "chunked", 0)
    assert document.error.endswith("Amber will try again automatically.")
    assert document.progress["waits"] == 1
    wait = document.not_before - timezone.now()
    assert timedelta(0) < wait <= timedelta(seconds=1 if fault == "fake-429-retry-after" else 10)
    assert claim_batch("w1") is None

    library.embedding_model.upstream_id = "fake-embedding"
    library.embedding_model.save()
    document_services.retry_document(document)
    wake(library)
    ingest()
    document.refresh_from_db()
    assert (document.status, document.error) == ("ready", "")
    assert "waits" not in document.progress


def wake(library: Any) -> None:
    from libraries.ingestion import claims

    claims.rest_model(library.embedding_model_id, 0)


def test_it_waits_longer_each_time(alice, fake_provider):
    library = new_library(alice, embedding_model=model_that(fake_provider, "fake-503"))
    document = new_document(library)
    waits = []
    for _ in range(3):
        Document.objects.update(not_before=None)
        wake(library)
        ingest()
        document.refresh_from_db()
        waits.append((document.not_before - timezone.now()).total_seconds())
    assert waits[0] < 11 < waits[1] < 21 < waits[2] < 41


def test_while_one_provider_rests_others_go_on(alice, fake_provider):
    busy = new_library(alice, embedding_model=model_that(fake_provider, "fake-429"))
    waiting = [new_document(busy) for _ in range(20)]
    document = new_document(new_library(alice))
    ingest()
    document.refresh_from_db()
    assert document.status == "ready"
    states = Document.objects.filter(pk__in=[d.pk for d in waiting]).values_list(
        "status", "attempt"
    )
    assert set(states) == {("queued", 0)}
    assert fake_provider.stats()["embed_requests"] >= 0
    assert Document.objects.filter(not_before__isnull=True, status="queued").exists()


@pytest.mark.parametrize(
    ("fault", "fields", "said"),
    [
        ("fake-401", {}, "refused Amber's credentials"),
        ("fake-400", {}, "asked to fail"),
        ("fake-no-finish-first", {}, "vectors for"),
        ("fake-no-dimensions", {"dimensions": 63}, "vectors of 1536, not 63"),
    ],
)
def test_a_provider_that_will_not_do_is_named_as_the_reason(
    alice, fake_provider, fault, fields, said
):
    library = new_library(alice, embedding_model=model_that(fake_provider, fault, **fields))
    documents = [new_document(library) for _ in range(2)]
    ingest()
    for document in documents:
        document.refresh_from_db()
        assert (document.status, document.stage) == ("failed", "chunked")
        assert said in document.error
        assert not chunks_of(document)
    assert_counted(library)


def test_a_text_that_the_provider_refuses_fails_alone(library, monkeypatch):
    """What fails together is tried one by one."""
    good, bad = new_document(library, "Harmless."), new_document(library, "Outrageous.")
    real = embed_texts

    def choosy(texts: Any, **kwargs: Any) -> Any:
        from engine.provider.faults import fault

        if any("Outrageous" in text for text in texts):
            raise fault("provider_rejected", "no such language here")
        return real(texts, **kwargs)

    monkeypatch.setattr("libraries.ingestion.stages.embed_texts", choosy)
    ingest()
    assert_ready(good, "Harmless.")
    bad.refresh_from_db()
    assert bad.status == "failed"
    assert "no such language here" in bad.error


def test_what_nobody_thought_of_fails_one_document_with_a_trace(library, monkeypatch, caplog):
    good, bad = new_document(library, "Harmless."), new_document(library, "Outrageous.")
    real = chunk

    def broken(text: str, **kwargs: Any) -> Any:
        return 1 // 0 if "Outrageous" in text else real(text, **kwargs)

    monkeypatch.setattr("libraries.ingestion.stages.chunk", broken)
    ingest()
    assert_ready(good, "Harmless.")
    bad.refresh_from_db()
    assert (bad.status, "worker's log" in bad.error) == ("failed", True)
    assert "ZeroDivisionError" in caplog.text


# -- New content ---------------------------------------------------------------------------------


def test_new_content_is_found_when_all_of_it_is(library, monkeypatch):
    """Until then the old one is, with the text its offsets count in."""
    old, new = text_of(1), text_of(2, sentences=70)
    document = new_document(library, old, path="a.txt")
    ingest()
    replaced = intake.put(library, given(new, path="a.txt"))
    assert replaced.document.pk == document.pk
    seen = []
    for step in STEPS.values():
        with (
            struck(monkeypatch, step, lambda: seen.append(Document.objects.get())),
            struck(monkeypatch, STEPS["publishing"], kill),
            pytest.raises(Killed),
        ):
            ingest()
        expire(document)
        Document.objects.update(attempt=0)
        sweep.sweep_documents()
    assert {d.text for d in seen} == {old}
    assert_chunked(Document.objects.get())
    assert_counted(library)
    ingest()
    assert_ready(document, new)
    assert "replaces" not in document.progress
    assert_counted(library)
    assert File.objects.count() == 1


def test_new_content_that_fails_leaves_the_old_one_to_be_found(library):
    old = text_of(1)
    document = new_document(library, old, path="a")
    ingest()
    intake.put(library, given("%PDF-1.7 nonsense", path="a"))
    ingest()
    document.refresh_from_db()
    assert (document.status, document.text) == ("failed", old)
    assert_chunked(document)
    assert_counted(library)


def test_other_sizes_count_after_reindexing(library):
    text = text_of(1)
    document = new_document(library, text)
    ingest()
    before = len(chunks_of(document))
    services.update_library(library, changes={"chunk_tokens": 200}, by=OPERATOR)
    assert_counted(library)
    services.reindex_library(library)
    document.refresh_from_db()
    assert (document.status, document.stage) == ("queued", "parsed")
    assert len(chunks_of(document)) == before
    ingest()
    assert_ready(document, text)
    assert len(chunks_of(document)) < before
    assert_counted(library)
