"""Files in a bucket of S3: written, read, linked to and erased, and what people see when it fails."""

import io
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.files.storage import storages
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from amber.backups import archive
from amber.lib.errors import Unavailable
from amber.lib.storage.bucket import PART_BYTES
from amber.lib.storage.files import file_storage
from amber.setup import check
from amber.web import health
from libraries.api.uploads import read_upload
from libraries.files import reading, storage
from libraries.files.attachments import attachment_of
from libraries.files.payload import Payload
from libraries.files.services import store_upload
from libraries.ingestion import intake
from libraries.models import Document, File
from libraries.tests.documents import pdf_of
from libraries.tests.ledger import ingest, new_library
from libraries.tests.stored_files import FILES, body_of, content, picture, stored, upload
from tests.fixtures.bucket import bucket, bucket_files, entry_of, keep_files
from tests.fixtures.personas import api

__all__ = ["bucket", "bucket_files"]


@pytest.fixture(autouse=True)
def own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "unused"
    health._ask_storage.cache_clear()


@pytest.fixture
def broken(settings, monkeypatch, bucket):
    """Files are in a bucket that is not there."""
    keep_files(settings, monkeypatch, bucket.url().replace("amber-files", "amber-nothing"))


@pytest.mark.django_db(transaction=True)
def test_a_file_is_uploaded_read_and_deleted(alice, bucket_files, tmp_path):
    file = upload(alice, "notes.txt", b"Milk and honey")
    assert file.status_code == 201, file.content
    [name] = bucket_files.names()
    assert name == f"amber/{File.objects.get().path}"
    assert bucket_files.body(name) == b"Milk and honey"
    answer = api(alice).get(f"{FILES}{file.json()['id']}/content/")
    assert body_of(answer) == b"Milk and honey"
    assert answer["Content-Length"] == "14"
    assert not (tmp_path / "unused").exists()
    assert api(alice).delete(f"{FILES}{file.json()['id']}/").status_code == 204
    assert bucket_files.names() == []


def test_a_storage_that_hangs_holds_one_who_asks(monkeypatch):
    asked, may_answer = Event(), Event()

    def hang() -> None:
        asked.set()
        may_answer.wait()

    monkeypatch.setattr(health, "file_storage", lambda: SimpleNamespace(check=hang))
    monkeypatch.setattr(health, "FILES_WAIT_SECONDS", 0.01)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(health.files_answer)
        asked.wait()
        assert not health.files_answer()
        assert not first.done()
        may_answer.set()
        assert first.result()
    assert health.files_answer()


class WatchedFile(io.FileIO):
    """Keeps the sizes of what was read at once."""

    def __init__(self, path):
        super().__init__(path)
        self.sizes = set()

    def read(self, most_bytes=-1):
        piece = super().read(most_bytes)
        self.sizes.add(len(piece))
        return piece


def test_a_large_upload_goes_in_parts_and_a_download_in_pieces(
    alice, bucket_files, settings, tmp_path
):
    """Neither holds the file: one part at a time is read, sent and forgotten."""
    settings.AMBER_MAX_UPLOAD_BYTES = 30_000_000
    piece, pieces = bytes(range(256)) * 4_096, 20
    (tmp_path / "large.bin").write_bytes(piece * pieces)
    parts = []
    in_use: Any = storages["default"]
    in_use.client.meta.events.register("before-call.s3.UploadPart", lambda **_: parts.append(1))
    with WatchedFile(tmp_path / "large.bin") as sent:
        file = store_upload(alice.principal, name="large.bin", data=Payload(sent))
        assert max(sent.sizes) <= PART_BYTES
    assert file.size == len(piece) * pieces
    assert len(parts) == 3
    with storage.open_bytes(file.path) as opened:
        assert [opened.read(len(piece)) == piece for _ in range(pieces)] == [True] * pieces
        assert opened.read(1) == b""
    with storage.seekable_bytes(file.path) as opened:
        assert Payload(opened).sha256 == file.file_hash


def test_a_large_form_is_not_read_into_memory(bucket_files):
    """Django has it on the disk, and there it stays."""
    with TemporaryUploadedFile("large.bin", "", 3, None) as sent:
        sent.write(b"abc")
        name, payload = read_upload(sent)
        assert (name, payload.stream, payload.size) == ("large.bin", sent.file, 3)


def test_uploads_are_encrypted_as_the_address_says(settings, monkeypatch, bucket_files):
    for asked in ({"sse": "AES256"}, {"sse": "aws:kms", "kms_key": "alias/amber"}):
        keep_files(settings, monkeypatch, bucket_files.url(**asked))
        about = bucket_files.about(f"amber/{storage.write_bytes(Payload.of(b'x'))}")
        assert about["ServerSideEncryption"] == asked["sse"]
        assert asked.get("kms_key", "") in about.get("SSEKMSKeyId", "")


def test_documents_are_read_from_the_bucket_and_wait_while_it_is_away(
    alice, bucket_files, monkeypatch, settings
):
    library = new_library(alice)
    data = pdf_of(["The dues are 42 crowns."])
    given = intake.DocumentSource(name="rules.pdf", data=data)
    document = intake.put(library, given).document
    keep_files(settings, monkeypatch, bucket_files.url().replace("amber-files", "amber-nothing"))
    ingest()
    document = Document.objects.get(pk=document.pk)
    assert (document.status, document.error) == (
        "queued",
        "Files cannot be read at the moment. Amber will try again automatically.",
    )
    keep_files(settings, monkeypatch, bucket_files.url())
    Document.objects.update(not_before=None)
    ingest()
    document = Document.objects.get(pk=document.pk)
    assert document.status == "ready"
    assert "42 crowns" in (document.text or "")
    file = stored(alice, "rules.pdf", data)
    reading.read_file(file)
    assert "42 crowns" in (file.text or "")


def test_a_model_gets_a_short_link_where_that_is_allowed_and_else_the_bytes(
    alice, bucket_files, settings, monkeypatch
):
    file = stored(alice, "cat.png", picture())
    assert attachment_of(file, vision=True).url.startswith("data:image/png;base64,"), (
        "a private one"
    )
    keep_files(settings, monkeypatch, bucket_files.url(links="1"))
    url = attachment_of(file, vision=True).url
    assert url.startswith(f"{bucket_files.endpoint}/amber-files/amber/{file.path}?")
    asked = parse_qs(urlsplit(url).query)
    assert asked["X-Amz-Expires"] == ["900"]
    assert asked["response-content-type"] == ["image/png"]
    assert attachment_of(file, vision=True).url == url, "the same for a while: prefix caches"
    assert attachment_of(file, vision=False).url == ""


def test_people_get_503_and_what_to_do_while_the_bucket_is_away(alice, broken, client, caplog):
    answer = upload(alice, "notes.txt", b"Milk")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "unavailable"
    assert "Try again later" in answer.json()["error"]["message"]
    assert not File.objects.exists()
    file = File.objects.create(
        organization=alice.organization,
        user=alice.user,
        name="cat.png",
        path="ab/cd/abcd",
        size=4,
        file_hash="0" * 64,
        mime_type="image/png",
    )
    assert api(alice).get(content(file)).status_code == 503
    with pytest.raises(Unavailable, match="Try again later"):
        attachment_of(file, vision=True)
    file.mime_type = "application/octet-stream"
    reading.read_file(file)
    assert (file.unreadable, file.read_at) == (reading.NOT_NOW, None)
    assert client.get("/readyz").json()["checks"]["files"] is False
    assert "test-secret" not in caplog.text


def test_what_cannot_be_erased_is_erased_by_the_next_cleaning(
    alice, bucket_files, settings, monkeypatch
):
    file = stored(alice)
    keep_files(settings, monkeypatch, bucket_files.url().replace("amber-files", "amber-nothing"))
    asked: list[int] = []
    away: Any = storages["default"]
    away.client.meta.events.register("before-call.s3.DeleteObject", lambda **_: asked.append(1))
    storage.erase_bytes(file.path)
    storage.delete_expired_files()
    assert len(bucket_files.names()) == 1, "it is still away"
    assert len(asked) == 1, "hundreds of files do not wait for it one after the other"
    keep_files(settings, monkeypatch, bucket_files.url())
    storage.delete_expired_files()
    assert bucket_files.names() == []


@pytest.fixture
def in_two_days(monkeypatch):
    later = timezone.now() + timedelta(days=2)
    monkeypatch.setattr("libraries.files.storage.timezone.now", lambda: later)


def erase_orphans_beside(monkeypatch: Any, *paths: str) -> None:
    """As the periodic job does when it is the turn of the folders of these."""
    for folder in {int(path[:2], 16) for path in paths}:
        at = folder * storage.ORPHANS_EVERY_SECONDS + 1
        monkeypatch.setattr("libraries.files.storage.time.time", lambda at=at: at)
        storage.erase_orphans()


def test_bytes_without_a_row_stay_for_a_day(db, bucket_files, monkeypatch):
    orphan = storage.write_bytes(Payload.of(b"x"))
    erase_orphans_beside(monkeypatch, orphan)
    assert bucket_files.names() == [f"amber/{orphan}"], "it may be of an upload that goes on"


def test_bytes_without_a_row_are_erased_after_a_day(alice, bucket_files, monkeypatch, in_two_days):
    kept = stored(alice)
    orphan = storage.write_bytes(Payload.of(b"x"))
    erase_orphans_beside(monkeypatch, kept.path, orphan)
    assert bucket_files.names() == [f"amber/{kept.path}"]


def test_an_empty_database_erases_no_files_of_the_one_before(
    db, bucket_files, monkeypatch, in_two_days
):
    """Somebody lost the database, and Amber made a new one before a backup was restored."""
    former = storage.write_bytes(Payload.of(b"x"))
    just_made = timezone.now() + timedelta(minutes=1)
    MigrationRecorder(connection).migration_qs.update(applied=just_made)
    erase_orphans_beside(monkeypatch, former)
    assert bucket_files.names() == [f"amber/{former}"]


def test_a_backup_holds_what_is_in_the_bucket(alice, bucket_files, tmp_path):
    files = {stored(alice, data=data).path for data in (b"1", b"22")}
    archive.write_archive(
        tmp_path / "a.tar", file_storage(), lambda names: {"names": sorted(names)}
    )
    assert archive.read_manifest(tmp_path / "a.tar") == {"names": sorted(files)}
    assert archive.unpack(tmp_path / "a.tar", tmp_path / "out") == files


def test_a_start_says_what_is_wrong_with_the_bucket(bucket, monkeypatch):
    for url, sentence in {
        bucket.url().replace("amber-files", "amber-nothing"): "NoSuchBucket",
        "s3://amber-files?endpoint=http://127.0.0.1:1": "EndpointConnectionError",
    }.items():
        entry_of(monkeypatch, url)
        said = check._storage_refusal("AMBER_FILES_URL")
        assert sentence in said
        assert "test-secret" not in said
    entry_of(monkeypatch, bucket.url())
    assert check._storage_refusal("AMBER_FILES_URL") == ""
