"""Documents from addresses: fetched when given, again when asked, the old text until then."""

from typing import Any

import pytest

from amber.lib.tests.local_server import LocalServer, say, send_to
from libraries.models import Document
from libraries.tests.enqueued import enqueued
from libraries.tests.ledger import ALL, ingest, new_document, new_library
from tests.fixtures.personas import Persona, api

__all__ = ["enqueued"]

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = b"<html><title>Pumps</title><body><p>The pump is blue.</p></body></html>"


@pytest.fixture(autouse=True)
def messages(enqueued):
    return enqueued


@pytest.fixture
def url(server):
    server.routes["/docs/pumps.html"] = say(PAGE, headers={"Content-Type": "text/html"})
    return f"http://127.0.0.1:{server.port}/docs/pumps.html"


def give(persona: Persona, library: Any, url: str, **more: Any) -> Any:
    return api(persona).post(f"{ALL}{library.pk}/documents/", {"url": url, **more})


def refresh(persona: Persona, document: Any) -> Any:
    return api(persona).post(f"/api/v1/documents/{document.pk}/refresh/")


def test_what_the_address_says_becomes_a_document(bob, library, url, messages):
    answer = give(bob, library, url)
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["name"], body["source"], body["status"]) == ("pumps.html", url, "queued")
    assert messages == ["libraries.ingest"]
    ingest()
    document = Document.objects.get()
    assert document.text == "# Pumps\n\nThe pump is blue."
    assert document.mime_type == "text/html"


def test_it_can_be_named_and_placed(bob, library, url):
    body = give(bob, library, url, name="Pumps", path="web/pumps", metadata={"a": 1}).json()
    assert (body["name"], body["path"], body["metadata"]) == ("Pumps", "web/pumps", {"a": 1})


def test_the_encoding_the_server_names_is_used(bob, library, server):
    text = "Київ є столицею України"
    kind = {"Content-Type": "text/plain; charset=koi8-u"}
    server.routes["/"] = say(text.encode("koi8-u"), headers=kind)
    give(bob, library, f"http://127.0.0.1:{server.port}/")
    ingest()
    assert Document.objects.get().text == text


def test_a_redirect_is_followed(bob, library, server, url):
    server.routes["/old"] = send_to("/docs/pumps.html")
    assert give(bob, library, f"http://127.0.0.1:{server.port}/old").status_code == 201


def test_the_same_address_again_is_the_same_document(bob, library, server, url):
    give(bob, library, url)
    server.routes["/docs/pumps.html"] = say(PAGE.replace(b"blue", b"red"))
    answer = give(bob, library, url)
    assert answer.status_code == 200
    ingest()
    assert "red" in (Document.objects.get().text or "")


def test_the_same_key_fetches_once(bob, library, server, url):
    path, body = f"{ALL}{library.pk}/documents/", {"url": url}
    first, second = (api(bob).post(path, body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://[::1]/", "http://10.0.0.1/x", "file:///etc/passwd", "no address"],
)
def test_addresses_at_home_are_refused(bob, library, url):
    answer = give(bob, library, url)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unsafe_address")
    assert "url" in answer.json()["error"]["fields"]
    assert not Document.objects.exists()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (say(b"", status=404), 400),
        (say(b""), 400),
        (say(b"\x89PNG\r\n\x1a\n" + b"\0" * 50), 400),
        (say(b"x" * 2_000), 413),
    ],
    ids=["missing", "empty", "image", "large"],
)
def test_an_address_without_a_document_is_refused(bob, library, server, settings, answer, status):
    settings.AMBER_MAX_UPLOAD_BYTES = 1_000
    server.routes["/x"] = answer
    given = give(bob, library, f"http://127.0.0.1:{server.port}/x")
    assert given.status_code == status
    assert "url" in given.json()["error"]["fields"]


# -- Again -----------------------------------------------------------------------------------------


@pytest.fixture
def document(bob, library, url):
    give(bob, library, url, name="Pumps")
    ingest()
    return Document.objects.get()


def test_a_changed_page_is_indexed_anew(bob, document, server, messages):
    server.routes["/docs/pumps.html"] = say(PAGE.replace(b"blue", b"red"))
    messages.clear()
    answer = refresh(bob, document)
    assert (answer.status_code, answer.json()["status"]) == (200, "queued")
    assert messages == ["libraries.ingest"]
    document.refresh_from_db()
    assert "blue" in document.text, "it is searchable until the new text is"
    ingest()
    document.refresh_from_db()
    assert "red" in document.text
    assert document.name == "Pumps"


def test_an_unchanged_page_stays_as_it_is(bob, document):
    before = document.updated_at
    assert refresh(bob, document).json()["status"] == "ready"
    document.refresh_from_db()
    assert document.updated_at == before


def test_an_address_that_fails_leaves_the_document_as_it_was(bob, document, server):
    server.routes["/docs/pumps.html"] = say(b"gone", status=410)
    answer = refresh(bob, document)
    assert answer.status_code == 400
    assert "410" in answer.json()["error"]["message"]
    document.refresh_from_db()
    assert document.status == "ready"


def test_what_was_not_fetched_cannot_be_fetched_again(bob, library):
    answer = refresh(bob, new_document(library))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")


def test_only_who_writes_the_library_refreshes(alice, bob, mallory, server, url):
    shared = new_library(alice, shared=True)
    give(alice, shared, url)
    document = Document.objects.get()
    assert refresh(bob, document).status_code == 403
    assert refresh(mallory, document).status_code == 404
    assert api().post(f"/api/v1/documents/{document.pk}/refresh/").status_code == 401
    assert isinstance(server, LocalServer) and len(server.requests) == 1
