import pytest

from libraries.models import Document
from libraries.tests.enqueued import enqueued
from libraries.tests.ledger import (
    ALL,
    assert_counted,
    chunks_of,
    ingest,
    new_document,
    new_library,
    text_of,
)
from tests.fixtures.personas import api

__all__ = ["enqueued"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def document(library):
    document = new_document(library, text_of(1), path="docs/a.txt")
    ingest()
    document.refresh_from_db()
    return document


def address(document: Document, verb: str = "") -> str:
    return f"/api/v1/documents/{document.pk}/{verb}"


def test_lists_the_newest_first_without_their_texts(bob, library, django_assert_max_num_queries):
    documents = [new_document(library) for _ in range(3)]
    ingest()
    client = api(bob)
    with django_assert_max_num_queries(7):
        shown = client.get(f"{ALL}{library.pk}/documents/").json()["results"]
    assert [each["id"] for each in shown] == [str(d.pk) for d in reversed(documents)]
    assert not {"text", "pages"} & set(shown[0])


def test_filters_by_status_stage_and_path(bob, library, document):
    new_document(library, path="src/b.txt")
    plain = new_document(library)
    Document.objects.filter(pk=plain.pk).update(status="failed", stage="parsed")

    def found(**asked: str) -> list[str]:
        shown = api(bob).get(f"{ALL}{library.pk}/documents/", asked).json()["results"]
        return [each["path"] for each in shown]

    assert found(status="ready") == ["docs/a.txt"]
    assert found(status="failed", stage="parsed") == [None]
    assert found(stage="stored") == ["src/b.txt"]
    assert found(path_prefix="docs/") == ["docs/a.txt"]
    assert found(path_prefix="d%") == []
    answer = api(bob).get(f"{ALL}{library.pk}/documents/", {"status": "lost"})
    assert list(answer.json()["error"]["fields"]) == ["status"]


def test_the_text_is_a_conflict_until_it_is_there(bob, library):
    waiting = new_document(library)
    assert api(bob).get(address(waiting, "text/")).status_code == 409


def test_the_chunks_are_those_of_the_text_page_by_page(bob, document):
    text = api(bob).get(address(document, "text/")).json()["text"]
    seen, url = [], address(document, "chunks/") + "?limit=4"
    while url:
        page = api(bob).get(url).json()
        seen += page["results"]
        last, url = page, page["next"]
    assert [c["order"] for c in seen] == list(range(len(chunks_of(document))))
    for piece in seen:
        assert piece["content"] == text[piece["start"] : piece["end"]]
        assert piece["vectorized"] is True
        assert piece["tokens"] > 0
        assert not {"vector", "search"} & set(piece)
    back = [c["order"] for c in api(bob).get(last["previous"]).json()["results"]]
    assert back == [c["order"] for c in seen][-len(last["results"]) - 4 : -len(last["results"])]
    first = api(bob).get(address(document, "chunks/") + "?limit=4").json()
    assert first["previous"] is None
    assert api(bob).get(address(document, "chunks/") + "?cursor=x").status_code == 400


def test_a_member_reads_what_is_shared_and_changes_nothing(alice, bob, mallory):
    shared = new_document(new_library(alice, shared=True))
    ingest()
    for verb in ("", "text/", "chunks/"):
        assert api(bob).get(address(shared, verb)).status_code == 200
        assert api(mallory).get(address(shared, verb)).status_code == 404
    assert api(bob).patch(address(shared), {"name": "x"}).status_code == 403
    assert api(bob).delete(address(shared)).status_code == 403
    for verb in ("retry/", "cancel/"):
        assert api(bob).post(address(shared, verb)).status_code == 403


def test_name_and_metadata_change_without_indexing(bob, document):
    changes = {"name": "b.txt", "metadata": {"year": 2024}, "path": "x", "status": "failed"}
    answer = api(bob).patch(address(document), changes)
    assert answer.status_code == 200
    body = answer.json()
    assert (body["name"], body["metadata"], body["path"]) == ("b.txt", {"year": 2024}, "docs/a.txt")
    assert body["status"] == "ready"
    assert api(bob).patch(address(document), {"metadata": 1}).status_code == 400


def test_metadata_with_a_number_beyond_64_bits_is_shown(bob, library, document):
    changed = api(bob).patch(address(document), {"metadata": {"n": 1e30}})
    assert changed.status_code == 200
    assert api(bob).get(address(document)).json()["metadata"] == {"n": 1e30}
    listed = api(bob).get(f"/api/v1/libraries/{library.pk}/documents/").json()
    assert listed["results"][0]["metadata"] == {"n": 1e30}


def test_cancel_ends_what_waits_and_leaves_what_ended(bob, library, document, enqueued):
    waiting = new_document(library)
    for _ in range(2):
        answer = api(bob).post(address(waiting, "cancel/"))
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert answer.json()["ended_at"]
    assert api(bob).post(address(document, "cancel/")).json()["status"] == "ready"
    running = new_document(library)
    Document.objects.filter(pk=running.pk).update(status="running")
    assert api(bob).post(address(running, "cancel/")).json()["status"] == "running"
    running.refresh_from_db()
    assert running.cancel_requested_at is not None


def test_retry_tries_again_at_once(bob, library, document, enqueued):
    failed = new_document(library)
    Document.objects.filter(pk=failed.pk).update(
        status="failed", stage="chunked", attempt=3, error="broken"
    )
    body = api(bob).post(address(failed, "retry/")).json()
    assert (body["status"], body["stage"], body["attempt"], body["error"]) == (
        "queued",
        "chunked",
        0,
        "",
    )
    assert enqueued == ["libraries.ingest"]
    assert api(bob).post(address(document, "retry/")).json()["status"] == "ready"


def test_delete_takes_chunks_and_bytes_along(bob, library, document, media):
    other = new_document(library)
    ingest()
    assert api(bob).delete(address(document)).status_code == 204
    assert api(bob).get(address(document)).status_code == 404
    assert not chunks_of(document)
    assert len(media()) == 1
    assert chunks_of(other)
    assert_counted(library)


def test_the_text_of_a_document_that_failed_says_why_there_is_none(bob, library):
    document = new_document(library)
    Document.objects.filter(pk=document.pk).update(status="failed", error="The file is scanned.")
    answer = api(bob).get(address(document, "text/"))
    assert answer.status_code == 409
    assert answer.json()["error"]["message"] == "The file is scanned."


@pytest.mark.parametrize(
    "body", [{}, {"name": "a"}, {"text": "a", "name": "a", "url": "https://a.b"}]
)
def test_what_is_no_single_source_is_told_which_there_are(bob, library, body):
    answer = api(bob).post(f"{ALL}{library.pk}/documents/", body)
    assert answer.status_code == 400
    assert "or `url`" in answer.json()["error"]["message"]
