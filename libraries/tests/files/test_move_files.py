"""Files move from a folder to a bucket and back while Amber reads, writes and deletes them."""

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import CommandError, call_command

from amber.lib.storage import address
from amber.lib.storage.files import file_storage
from amber.lib.storage.folder import FolderStorage
from libraries.tests.stored_files import body_of, content, stored
from tests.fixtures.bucket import bucket, entry_of
from tests.fixtures.personas import api

__all__ = ["bucket"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def places(settings, monkeypatch, bucket, tmp_path):
    """Put files into the folder alone, or move them to the bucket or back."""
    folder = address.folder_entry(tmp_path / "files")
    there = entry_of(monkeypatch, bucket.url())
    choices = {
        "folder": folder,
        "bucket": there,
        "to bucket": address.moving(there, folder),
        "to folder": address.moving(folder, there),
    }

    def choose(name):
        settings.STORAGES = settings.STORAGES | {"default": choices[name]}

    choose("folder")
    yield choose
    bucket.empty()


def move(*arguments: str) -> str:
    said = io.StringIO()
    call_command("move_files", *arguments, stdout=said, stderr=said)
    return said.getvalue()


def files_in(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "files").rglob("*") if path.is_file()]


def test_files_move_to_a_bucket_and_back_while_they_are_used(alice, places, bucket, tmp_path):
    before = [stored(alice, data=b"%d" % n) for n in range(3)]
    places("to bucket")
    after = stored(alice, data=b"new")
    assert len(bucket.names()) == 1, "new files go to the bucket"
    for file in (*before, after):
        assert body_of(api(alice).get(content(file))), "all are found"
    assert {each.name for each in file_storage().walk()} == {f.path for f in (*before, after)}
    assert "4 files: 3 copied, 1 present" in move()
    assert "4 files: 4 present" in move(), "again, nothing to do"
    assert len(files_in(tmp_path)) == 3, "the old copies stay until they are proved"
    assert api(alice).delete(f"/api/v1/files/{before[0].pk}/").status_code == 204
    assert len(files_in(tmp_path)) == 2, "a deleted file is deleted in both"
    assert "3 files: 3 present, 2 erased" in move("--erase")
    assert files_in(tmp_path) == []
    places("bucket")
    assert body_of(api(alice).get(content(before[1]))) == b"1"
    places("to folder")
    assert "3 copied" in move()
    assert "3 erased" in move("--erase")
    places("folder")
    assert body_of(api(alice).get(content(after))) == b"new"
    assert bucket.names() == []


def test_a_move_that_broke_off_goes_on_and_names_what_is_not_whole(alice, places, bucket, tmp_path):
    whole, half, damaged, lost = (stored(alice, data=data) for data in (b"1", b"22", b"333", b"4"))
    places("to bucket")
    bucket.client.put_object(Bucket="amber-files", Key=f"amber/{half.path}", Body=b"2")
    (tmp_path / "files" / damaged.path).write_bytes(b"3x3")
    (tmp_path / "files" / lost.path).unlink()
    said = io.StringIO()
    with pytest.raises(CommandError, match="2 of 4 files are not whole"):
        call_command("move_files", stdout=said, stderr=said)
    assert f"{damaged.path} (damaged)" in said.getvalue()
    assert f"{lost.path} (missing)" in said.getvalue()
    assert bucket.body(f"amber/{half.path}") == b"22"
    # The right length, but not what was uploaded: nothing is erased for it, and it is copied again.
    bucket.client.put_object(Bucket="amber-files", Key=f"amber/{whole.path}", Body=b"x")
    with pytest.raises(CommandError, match="2 of 4"):
        move("--erase")
    assert (tmp_path / "files" / whole.path).exists()
    assert bucket.body(f"amber/{whole.path}") == b"1"
    assert not (tmp_path / "files" / half.path).exists()


def test_without_an_old_place_there_is_nothing_to_move(places):
    with pytest.raises(CommandError, match="Set AMBER_FILES_OLD_URL"):
        move()


def test_a_file_appears_in_a_folder_once_it_is_whole(tmp_path):
    """Whoever opens it while it is copied reads the old place's, not half of it."""
    storage = FolderStorage(location=tmp_path)
    seen = []

    class Slow(ContentFile[bytes]):
        def chunks(self, chunk_size=None):
            for place in range(3):
                seen.append(storage.exists("ab/whole"))
                if self.name == "broken" and place == 2:
                    raise OSError("The disk is full.")
                yield b"piece"

    with pytest.raises(OSError, match="disk is full"):
        storage.save("ab/whole", Slow(b"", name="broken"))
    assert [each.name for each in storage.walk()] == []
    assert storage.save("ab/whole", Slow(b"")) == "ab/whole"
    assert seen == [False] * 6
    assert [(each.name, each.size) for each in storage.walk()] == [("ab/whole", 15)]


def test_nothing_is_moved_onto_itself(alice, places, bucket, monkeypatch, settings, tmp_path):
    """Two addresses of one place differ: in how files are encrypted, or by a link. To erase is to lose them."""
    (tmp_path / "files").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "files")
    folder, link = (address.folder_entry(tmp_path / name) for name in ("files", "link"))
    plain, encrypted = (
        entry_of(monkeypatch, bucket.url(**more)) for more in ({}, {"sse": "AES256"})
    )
    for current, old in ((link, folder), (encrypted, plain)):
        entry = address.moving(current, old)
        settings.STORAGES = settings.STORAGES | {"default": entry}
        file = stored(alice, data=b"the only copy")
        for arguments in ((), ("--erase",)):
            with pytest.raises(CommandError, match="lead to the same files"):
                move(*arguments)
        assert body_of(api(alice).get(content(file))) == b"the only copy"
        assert [each.name for each in file_storage().walk()] == [file.path]


def test_a_bucket_that_is_away_breaks_the_move_off(alice, places):
    stored(alice)
    places("to bucket")
    moving: Any = storages["default"]
    moving.current.bucket_name = "amber-nothing"
    with pytest.raises(CommandError, match=r"NoSuchBucket\. Run it again"):
        move()
