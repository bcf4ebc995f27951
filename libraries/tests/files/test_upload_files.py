import hashlib
from io import BytesIO
from typing import Any
from unittest.mock import patch

import pytest
from django.core.files.storage import FileSystemStorage
from django.db import DatabaseError, OperationalError

from accounts.models import IdempotencyRecord
from amber.lib.errors import Conflict
from libraries.files import services
from libraries.models import File
from libraries.tests.stored_files import FILES, HTML, SVG, opened, picture, send, upload
from tests.fixtures.personas import api

BOUNDARY = "multipart/form-data; boundary=edge"


def form(disposition: bytes, data: bytes = b"hello") -> bytes:
    head = b'--edge\r\nContent-Disposition: form-data; name="file"; ' + disposition
    return head + b"\r\n\r\n" + data + b"\r\n--edge--\r\n"


def test_stores_row_and_bytes(alice, media):
    answer = upload(alice, "notes.txt", b"Milk and honey")
    assert answer.status_code == 201
    file = File.objects.get()
    assert (file.organization, file.user, file.guest_id) == (alice.organization, alice.user, None)
    assert (file.text, file.url, file.url_hash) == ("Milk and honey", None, None)
    [path] = media()
    assert path.read_bytes() == b"Milk and honey"
    shown = answer.json()
    assert shown.pop("created_at").endswith("Z")
    assert shown == {
        "id": str(file.pk),
        "name": "notes.txt",
        "mime_type": "text/plain",
        "size": 14,
        "file_hash": hashlib.sha256(b"Milk and honey").hexdigest(),
        "url": None,
        "is_read": True,
        "unreadable": None,
        "expired_at": None,
    }


def test_storage_names_are_random_and_spread_over_folders(alice, media):
    for _ in range(2):
        assert upload(alice, "notes.txt", b"the same").status_code == 201
    paths = [file.path for file in File.objects.all()]
    assert len(set(paths)) == 2
    assert all(path.count("/") == 2 and "notes" not in path for path in paths)
    assert len(media()) == 2


def test_works_with_a_key_and_with_a_csrf_token(alice, media):
    _, key = alice.new_key(scopes=["write"])
    answer = api(key=key).post(FILES, {"file": BytesIO(b"x")}, format="multipart")
    assert answer.status_code == 201
    client = api(alice, check_csrf=True)
    refused = client.post(FILES, {"file": BytesIO(b"x")}, format="multipart")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "csrf_failed")
    client.get("/api/v1/me/")
    answer = client.post(
        FILES,
        {"file": BytesIO(b"x")},
        format="multipart",
        headers={"X-CSRFToken": client.cookies["csrftoken"].value},
    )
    assert answer.status_code == 201
    assert len(media()) == 2


def test_refuses_strangers_and_keys_that_only_read(alice, media):
    assert api().post(FILES, {"file": BytesIO(b"x")}, format="multipart").status_code == 401
    _, key = alice.new_key(scopes=["read"])
    answer = api(key=key).post(FILES, {"file": BytesIO(b"x")}, format="multipart")
    assert answer.status_code == 403
    assert media() == []


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"--edge--\r\n", BOUNDARY, 400),
        (form(b'filename="a.txt"', b""), BOUNDARY, 400),
        (form(b"x=y"), BOUNDARY, 400),
        (form(b'filename="/"'), BOUNDARY, 400),
        (b"{}", "application/json", 400),
        (b'{"url": ""}', "application/json", 400),
        (b'{"url": 7, "file": "x"}', "application/json", 400),
        (b'{"url": "https://example.com/\\u0000"}', "application/json", 400),
    ],
)
def test_a_wrong_body_is_refused_by_field(alice, media, body, content_type, status):
    answer = send(alice, body, content_type)
    assert answer.status_code == status
    assert set(answer.json()["error"]["fields"]) == {"file" if "form" in content_type else "url"}
    assert not File.objects.exists()
    assert media() == []


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"[]", "application/json", 400),
        (b"not a form", BOUNDARY, 400),
        (b"x", "multipart/form-data", 400),
        (b"url=x", "application/x-www-form-urlencoded", 415),
    ],
)
def test_a_body_of_no_known_form_is_refused(alice, body, content_type, status):
    answer = send(alice, body, content_type)
    assert answer.status_code == status
    assert not File.objects.exists()


def test_too_large_is_413(alice, media, settings):
    settings.AMBER_MAX_UPLOAD_BYTES = 10
    assert upload(alice, "a.txt", b"x" * 10).status_code == 201
    answer = upload(alice, "a.txt", b"x" * 11)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert "10 bytes" in answer.json()["error"]["fields"]["file"][0]
    assert upload(alice, "a.txt", b"x" * 100_000).status_code == 413
    assert len(media()) == File.objects.count() == 1


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b'filename="../../etc/passwd"', "passwd"),
        (b'filename="C:\\\\temp\\\\a.txt"', "a.txt"),
        (b'filename="a\0b.txt"', "ab.txt"),
        (b"filename*=UTF-8''..%2F..%2Fa%00%0A%0D.txt", "a.txt"),
        ('filename="报告 ‮gpj.exe"'.encode(), "报告 gpj.exe"),
        (b'filename="' + b"x" * 400 + b'.txt"', "x" * 251 + ".txt"),
    ],
)
def test_names_are_cleaned_and_touch_no_path(alice, media, tmp_path, sent, kept):
    answer = send(alice, form(sent), BOUNDARY)
    assert answer.status_code == 201
    assert answer.json()["name"] == kept
    [path] = media()
    assert path.is_relative_to(tmp_path / "files")
    assert kept not in File.objects.get().path


@pytest.mark.parametrize(
    ("name", "data", "mime_type", "is_text"),
    [
        ("a.txt", picture("PNG"), "image/png", False),
        ("a.png", HTML, "text/plain", True),
        ("a.html", HTML, "text/plain", True),
        ("a.svg", SVG, "text/plain", True),
        ("a.png", SVG, "text/plain", True),
        ("a.csv", b"a,b\n1,2\n", "text/csv", True),
        ("a.MD", b"# Hello", "text/markdown", True),
        ("a.json", b"{}", "application/json", True),
        ("a.py", "print('你好')".encode("gbk"), "text/plain", True),
        ("a.txt", b"\x7fELF\x01\x01\0\0", "application/octet-stream", False),
        ("a.html", b"PK\x03\x04\0\0", "application/octet-stream", False),
        ("a.pdf", b"%PDF-1.7\n%%EOF", "application/octet-stream", False),
        ("a.jpg", picture("BMP"), "application/octet-stream", False),
        ("a.bin", b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav", False),
        ("a.mp3", b"\xff\xfb\x90\x64\0\0", "audio/mpeg", False),
        ("a.mp3", b"ID3 tags are explained here.", "text/plain", True),
    ],
)
def test_the_type_follows_the_bytes(alice, name, data, mime_type, is_text):
    assert upload(alice, name, data).json()["mime_type"] == mime_type
    assert (File.objects.get().text is not None) == is_text


def test_images_are_encoded_anew(alice, media):
    sent = picture("JPEG", comment=b"secret place") + b"<script>alert(1)</script>"
    answer = upload(alice, "a.jpg", sent)
    [path] = media()
    data = path.read_bytes()
    assert b"secret" not in data
    assert b"script" not in data
    assert opened(data).format == "JPEG"
    assert answer.json()["file_hash"] == hashlib.sha256(data).hexdigest()
    assert answer.json()["size"] == len(data)


@pytest.mark.parametrize("data", [picture("PNG")[:-30], b"\xff\xd8\xff\xe0 no image", b"GIF89a"])
def test_a_damaged_image_is_refused(alice, media, data):
    answer = upload(alice, "a.png", data)
    assert answer.status_code == 400
    assert "damaged" in answer.json()["error"]["fields"]["file"][0]
    assert media() == []


def test_long_texts_are_cut_for_models_and_kept_whole(alice, media, settings):
    settings.AMBER_MAX_MESSAGE_CHARS = 5
    upload(alice, "a.txt", "大大大大大大大".encode())
    text = File.objects.get().text
    assert text == "大大大大大\n[Cut: these are the first 5 of 7 characters.]"
    [path] = media()
    assert path.read_text() == "大" * 7


def test_the_same_key_stores_once(alice, media):
    first = upload(alice, "a.txt", b"one", **{"Idempotency-Key": "k"})
    again = upload(alice, "a.txt", b"one", **{"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert File.objects.count() == len(media()) == 1
    for name, data in (("b.txt", b"one"), ("a.txt", b"two")):
        other = upload(alice, name, data, **{"Idempotency-Key": "k"})
        assert other.json()["error"]["code"] == "idempotency_mismatch"
    assert len(media()) == 1


def test_a_refused_upload_gives_its_key_back(alice):
    assert upload(alice, "a.gif", b"GIF89a", **{"Idempotency-Key": "k"}).status_code == 400
    assert upload(alice, "a.txt", b"text", **{"Idempotency-Key": "k"}).status_code == 201


def test_a_row_that_fails_leaves_no_bytes(alice, media):
    with patch.object(File, "save", side_effect=DatabaseError), pytest.raises(DatabaseError):
        services.store_upload(alice.principal, name="a.txt", data=b"x")
    assert media() == []


def test_a_file_whose_commit_nobody_confirmed_keeps_its_bytes(alice, media):
    """The database went away after it had stored the row, and before it said so."""
    record = services._record

    def record_unheard(*given: Any) -> None:
        record(*given)
        raise OperationalError("server closed the connection unexpectedly")

    with patch.object(services, "_record", record_unheard), pytest.raises(OperationalError):
        services.store_upload(alice.principal, name="a.txt", data=b"x")
    [stored] = media()
    assert stored.match(File.objects.get().path)


def test_a_claim_that_was_taken_over_leaves_nothing(alice, media):
    claim = IdempotencyRecord(organization=alice.organization)
    with pytest.raises(Conflict):
        services.store_upload(alice.principal, name="a.txt", data=b"x", claim=claim)
    assert media() == []
    assert not File.objects.exists()


def test_bytes_that_cannot_be_written_leave_no_row(alice, media):
    with patch.object(FileSystemStorage, "_save", side_effect=OSError("No space left")):
        answer = upload(alice, "a.txt", b"x", **{"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert not File.objects.exists()
    assert media() == []
    assert upload(alice, "a.txt", b"x", **{"Idempotency-Key": "k"}).status_code == 201


def test_a_session_gets_the_same_refusals(alice):
    """Django reads the form early, in search of a CSRF token."""
    client: Any = api(alice, check_csrf=True)
    client.get("/api/v1/me/")
    token = {"X-CSRFToken": client.cookies["csrftoken"].value}
    for body in (b"not a form", b"--edge\r\n", form(b'filename="a.txt"', b"")):
        answer = client.generic("POST", FILES, body, content_type=BOUNDARY, headers=token)
        assert answer.status_code == 400
        assert set(answer.json()["error"]["fields"]) == {"file"}
