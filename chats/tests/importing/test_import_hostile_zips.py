"""Test that zips built to do harm, and damaged ones, end in sentences: no row, no byte is left."""

import json
import struct
import zipfile

from chats.importing import parts
from chats.models import Chat
from chats.tests.importing import exports
from chats.tests.importing.exports import row, send_files, zipped
from chats.tests.importing.import_answers import files_on_disk, only, own_storage, said

__all__ = ["own_storage"]


def test_a_zip_that_unpacks_to_too_much_is_refused(alice, settings):
    settings.AMBER_MAX_IMPORT_BYTES = 100_000
    bomb = zipped({"conversations.json": b"[" + b" " * 50_000_000 + b"]"})
    assert len(bomb) < 100_000
    assert "more than 100,000 bytes" in said(send_files(alice, {"a.zip": bomb}))
    several = zipped({f"conversations-{n:03}.json": b"[" + b" " * 90_000 + b"]" for n in range(12)})
    assert "bytes" in said(send_files(alice, {"a.zip": several}))


def test_what_a_zip_says_of_its_sizes_is_not_believed(alice, settings):
    settings.AMBER_MAX_IMPORT_BYTES = 100_000
    honest = zipped({"conversations.json": b"[" + b" " * 5_000_000 + b"]"})
    size = struct.pack("<I", 5_000_002)
    assert (
        "conversations.json"
        in said(send_files(alice, {"a.zip": honest.replace(size, struct.pack("<I", 10))}))
        or Chat.objects.count() == 0
    )


def test_damaged_and_odd_zips_are_refused(alice, tmp_path):
    whole = exports.chatgpt_zip()
    assert said(send_files(alice, {"a.zip": whole[:200]})) == parts.DAMAGED
    assert said(send_files(alice, {"a.zip": whole[: len(whole) // 2]})) == parts.DAMAGED
    odd = tmp_path / "odd.zip"
    with zipfile.ZipFile(odd, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("conversations.json", "[]")
    assert said(send_files(alice, {"a.zip": odd.read_bytes()})) == parts.DAMAGED
    assert said(send_files(alice, {"a.zip": zipped({"a.txt": "x", "b.txt": "y"})}))


def test_a_zip_of_very_many_files_is_refused_unopened(alice, monkeypatch):
    monkeypatch.setattr(parts, "MAX_PARTS", 10)
    many = zipped({f"{n}.json": "[]" for n in range(11)})
    assert "more than 10 files" in said(send_files(alice, {"a.zip": many}))


def test_paths_in_a_zip_lead_nowhere(alice, settings):
    """A name is a name: the file is stored under a random one, and named by its last part."""
    conversation = exports.chatgpt_conversation()
    question = conversation["mapping"]["q2"]["message"]
    question["metadata"]["attachments"][0]["name"] = "../../../etc/passwd"
    given: dict[str, bytes | str] = {
        "../../conversations.json": json.dumps([conversation]),
        "/../../file_00ab.png": exports.PNG,
    }
    before = files_on_disk()
    _, chat = only(send_files(alice, {"a.zip": zipped(given)}))
    file = row(chat=chat, role="file").file
    assert file.name == "passwd"
    (written,) = set(files_on_disk()) - set(before)
    assert written not in ("passwd", "file_00ab.png")
    assert ".." not in file.path


def test_a_file_that_cannot_be_stored_is_told(alice, settings):
    settings.AMBER_MAX_UPLOAD_BYTES = 1_000
    text = json.dumps([exports.chatgpt_conversation()])
    for bytes_of_file, words in (
        (b"\x89PNG\r\n\x1a\n" + b"junk", "damaged"),
        (b"x" * 1_001, "more than 1,000 bytes"),
        (b"", "empty"),
    ):
        given: dict[str, bytes | str] = {
            "conversations.json": text,
            "file_00ab.png": bytes_of_file,
        }
        answer = send_files(alice, {"a.zip": zipped(given)}, again="true")
        entry, _ = only(answer)
        (lost,) = [each for each in entry["not_taken"] if each["kind"] == "attachment"]
        assert words in lost["reason"]
    assert files_on_disk() == []
