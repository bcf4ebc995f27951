import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from libraries.models import Document, File, Library
from libraries.tests.enqueued import enqueued
from libraries.tests.ledger import ALL, assert_chunked, ingest, new_library, new_model, text_of
from libraries.tests.stored_files import SVG, picture
from tests.fixtures.personas import Persona, api

__all__ = ["enqueued"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def messages(enqueued):
    return enqueued


def to(library: Library) -> str:
    return f"{ALL}{library.pk}/documents/"


def upload(
    persona: Persona, library: Library, data: bytes, name: str = "a.txt", **fields: Any
) -> Any:
    form = {"file": SimpleUploadedFile(name, data), **fields}
    return api(persona).post(to(library), form, format="multipart")


class TestText:
    def test_half_a_character_is_refused_by_the_parser(self, bob, library):
        body = '{"name": "a.txt", "text": "\\ud800"}'
        answer = api(bob).generic("POST", to(library), body, content_type="application/json")
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed_json")
        assert not Document.objects.exists()

    def test_it_is_queued_and_a_worker_is_told(self, bob, library, messages):
        answer = api(bob).post(to(library), {"name": "notes.md", "text": "# Notes\n\nMilk."})
        assert answer.status_code == 201
        document = Document.objects.get()
        body = answer.json()
        assert body.pop("created_at") and body.pop("updated_at")
        assert body == {
            "id": str(document.pk),
            "library_id": str(library.pk),
            "name": "notes.md",
            "path": None,
            "source": "",
            "mime_type": "text/plain",
            "content_hash": document.content_hash,
            "stage": "stored",
            "status": "queued",
            "chunked": False,
            "attempt": 0,
            "error": "",
            "progress": {"chunks": 0, "embedded": 0},
            "timings": {},
            "metadata": {},
            "not_before": None,
            "repository_id": None,
            "user_id": str(bob.user.pk),
            "started_at": None,
            "ended_at": None,
        }
        assert messages == ["libraries.ingest"]
        ingest()
        body = api(bob).get(f"/api/v1/documents/{document.pk}/").json()
        assert (body["status"], body["stage"], body["chunked"]) == ("ready", "ready", True)
        assert body["progress"] == {"chunks": 1, "embedded": 1}
        text = api(bob).get(f"/api/v1/documents/{document.pk}/text/").json()
        assert text == {"text": "# Notes\n\nMilk.", "pages": []}

    def test_path_and_metadata_are_kept(self, bob, library):
        said = {"name": "n", "text": "t", "path": "docs/n.md", "metadata": {"year": 2024}}
        body = api(bob).post(to(library), said).json()
        assert (body["path"], body["metadata"]) == ("docs/n.md", {"year": 2024})

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", ""),
            ("text", ""),
            ("text", " \n\t "),
            ("text", "a\0b"),
            ("path", ""),
            ("path", "p" * 1_001),
            ("metadata", [1]),
            ("metadata", {"k": "v" * 20_000}),
        ],
    )
    def test_a_wrong_field_is_refused(self, bob, library, field, value):
        answer = api(bob).post(to(library), {"name": "n", "text": "t", field: value})
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "invalid"
        assert not Document.objects.exists()
        assert not File.objects.exists()

    def test_the_same_key_gives_it_once(self, bob, library):
        headers = {"Idempotency-Key": "k"}
        said = {"name": "n", "text": "t"}
        answers = [api(bob).post(to(library), said, headers=headers) for _ in range(2)]
        assert [a.status_code for a in answers] == [201, 201]
        assert answers[0].json() == answers[1].json()
        other = api(bob).post(to(library), {**said, "text": "u"}, headers=headers)
        assert other.json()["error"]["code"] == "idempotency_mismatch"


class TestUpload:
    def test_a_file_keeps_its_name_and_nobody_else_sees_it(self, bob, library, media):
        answer = upload(
            bob, library, text_of(1).encode(), "Handbuch.txt", metadata=json.dumps({"a": 1})
        )
        assert answer.status_code == 201
        assert answer.json()["name"] == "Handbuch.txt"
        assert answer.json()["metadata"] == {"a": 1}
        assert api(bob).get("/api/v1/files/").json()["results"] == []
        assert len(media()) == 1
        ingest()
        assert_chunked(Document.objects.get())

    @pytest.mark.parametrize("image_format", ["PNG", "JPEG", "GIF", "WEBP", "TIFF"])
    def test_images_are_refused_politely(self, bob, library, media, image_format):
        answer = upload(bob, library, picture(image_format), "a.txt")
        assert answer.status_code == 400
        assert "Libraries hold texts" in answer.json()["error"]["message"]
        assert not Document.objects.exists()
        assert media() == []

    def test_a_drawing_is_a_text(self, bob, library):
        assert upload(bob, library, SVG, "a.svg").status_code == 201

    def test_what_is_too_large_is_refused_before_it_is_read(self, bob, library, settings, media):
        settings.AMBER_MAX_UPLOAD_BYTES = 1_000
        assert upload(bob, library, b"a" * 1_000).status_code == 201
        answer = upload(bob, library, b"a" * 1_001)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
        text = api(bob).post(to(library), {"name": "n", "text": "ä" * 501})
        assert text.status_code == 413
        long = {"CONTENT_LENGTH": str(10**9)}
        client: Any = api(bob)
        sent = client.generic(
            "POST", to(library), b"--x--", "multipart/form-data; boundary=x", **long
        )
        assert sent.status_code == 413
        assert len(media()) == 1

    def test_an_empty_file_is_refused(self, bob, library):
        assert upload(bob, library, b"").status_code == 400
        assert upload(bob, library, b"\n \n").status_code == 400

    def test_a_form_without_a_file_is_refused(self, bob, library):
        answer = api(bob).post(to(library), {"name": "n"}, format="multipart")
        assert list(answer.json()["error"]["fields"]) == ["file"]


class TestAgain:
    def test_the_same_content_is_the_same_document(self, bob, library, media, messages):
        first = upload(bob, library, b"Milk.", "a.txt")
        second = upload(bob, library, b"Milk.", "b.txt")
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json()["id"] == second.json()["id"]
        assert len(media()) == File.objects.count() == 1
        other = new_library(bob)
        assert upload(bob, other, b"Milk.").status_code == 201

    def test_the_same_content_at_two_paths_is_two(self, bob, library):
        answers = [upload(bob, library, b"Milk.", path=path) for path in ("a", "b", "a")]
        assert [a.status_code for a in answers] == [201, 201, 200]
        assert Document.objects.count() == 2

    def test_the_same_path_takes_the_new_content(self, bob, library, media):
        first = upload(bob, library, text_of(1).encode(), path="a.txt")
        ingest()
        new = text_of(2)
        second = upload(bob, library, new.encode(), "new.txt", path="a.txt")
        assert (second.status_code, second.json()["id"]) == (200, first.json()["id"])
        assert (second.json()["status"], second.json()["stage"]) == ("queued", "stored")
        assert second.json()["name"] == "new.txt"
        ingest()
        document = Document.objects.get()
        assert document.text == new
        assert_chunked(document)
        assert len(media()) == 1

    @pytest.mark.parametrize("status", ["failed", "cancelled"])
    def test_what_ended_badly_is_tried_again(self, bob, library, status):
        upload(bob, library, b"Milk.")
        Document.objects.update(status=status, attempt=3, error="broken")
        answer = upload(bob, library, b"Milk.")
        assert answer.status_code == 200
        assert (answer.json()["status"], answer.json()["error"]) == ("queued", "")

    def test_what_is_ready_is_left_in_peace(self, bob, library):
        upload(bob, library, b"Milk.")
        ingest()
        assert upload(bob, library, b"Milk.").json()["status"] == "ready"
        assert Document.objects.get().attempt == 1


class TestWho:
    def test_whoever_may_write_the_library(self, alice, bob, carol, mallory):
        shared = new_library(alice, shared=True)
        said = {"name": "n", "text": "t"}
        assert api(carol).post(to(shared), said).status_code == 201
        assert api(bob).post(to(shared), said).status_code == 403
        assert api(mallory).post(to(shared), said).status_code == 404
        assert api(bob).get(to(shared)).status_code == 200

    def test_what_names_no_library_goes_to_ones_default(self, bob, carol):
        new_model(default=True)
        said = {"name": "n", "text": "t"}
        made = api(bob).post("/api/v1/documents/", said)
        assert made.status_code == 201
        library = Library.objects.get(user=bob.user, default=True)
        assert (made.json()["library_id"], library.name) == (str(library.pk), "My documents")
        again = api(bob).post("/api/v1/documents/", {"name": "n", "text": "u"})
        assert again.json()["library_id"] == str(library.pk)
        assert api(carol).post("/api/v1/documents/", said).json()["library_id"] != str(library.pk)

    @pytest.mark.parametrize("options", [{}, {"format": "multipart"}])
    def test_a_library_that_is_named_elsewhere_than_in_the_address_is_refused(self, bob, options):
        said = {"name": "n", "text": "t", "library_id": str(new_library(bob).pk)}
        refused = api(bob).post("/api/v1/documents/", said, **options)
        assert refused.status_code == 400
        assert "libraries/{id}/documents/" in refused.json()["error"]["fields"]["library_id"][0]
        assert not Document.objects.exists()
