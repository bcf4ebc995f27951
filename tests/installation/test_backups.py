"""Archives of files, and what a restore refuses before it touches anything."""

import errno
import fcntl
import hashlib
import io
import json
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.models import Organization
from amber.backups import archive, backup, programs, restore
from amber.backups.backup import make_backup
from amber.backups.programs import BackupError
from amber.lib.storage.folder import FolderStorage
from libraries.files import storage as file_bytes
from libraries.files.payload import Payload
from libraries.models import File
from tests.fixtures.bucket import bucket, bucket_files
from tests.fixtures.databases import disconnect_others
from tests.fixtures.personas import Persona

__all__ = ["bucket", "bucket_files"]

MANIFEST: dict[str, Any] = {"migrations": [], "rows": {}, "files": 0, "missing_files": []}


def member(name: str, **fields: Any) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def hostile(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as made:
        for each in members:
            made.addfile(each, io.BytesIO(b"x" * each.size))
    return path


def test_what_was_packed_is_unpacked(tmp_path):
    stored = tmp_path / "stored"
    (stored / "ab").mkdir(parents=True)
    (stored / "ab" / "one").write_bytes(b"1")
    (stored / "two").write_bytes(b"22")
    (stored / "link").symlink_to("/etc/passwd")
    named: list[set[str]] = []

    def manifest(packed: set[str]) -> dict[str, Any]:
        named.append(packed)
        return {"files": len(packed)}

    archive.write_archive(tmp_path / "a.tar", FolderStorage(location=stored), manifest)
    assert named == [{"ab/one", "two"}]
    assert archive.read_manifest(tmp_path / "a.tar") == {"files": 2}
    assert archive.unpack(tmp_path / "a.tar", tmp_path / "out") == {"ab/one", "two"}
    assert (tmp_path / "out" / "ab" / "one").read_bytes() == b"1"
    assert (tmp_path / "out" / "two").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "bad",
    [
        member("files/../../outside", size=1),
        member("/etc/outside", size=1),
        member("outside", size=1),
        member("files", size=1),
        member("files/link", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("files/link", type=tarfile.LNKTYPE, linkname="files/a"),
        member("files/device", type=tarfile.CHRTYPE),
        member("files/folder", type=tarfile.DIRTYPE),
    ],
    ids=lambda bad: f"{bad.name}-{bad.type.decode()}",
)
def test_what_leads_out_of_the_folder_is_refused(tmp_path, bad):
    path = hostile(tmp_path / "a.tar", member("files/a", size=1), bad)
    with pytest.raises(BackupError, match="which is in no backup of Amber"):
        archive.unpack(path, tmp_path / "deep" / "out")
    left = {each.relative_to(tmp_path).as_posix() for each in tmp_path.rglob("*")}
    assert left == {"a.tar", "deep"}


def test_one_name_is_not_written_twice(tmp_path):
    path = hostile(tmp_path / "a.tar", member("files/a", size=1), member("files/a", size=2))
    with pytest.raises(FileExistsError):
        archive.unpack(path, tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"no archive at all"])
def test_something_else_is_no_archive(tmp_path, content):
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(BackupError):
        archive.read_manifest(tmp_path / "a.tar")


# -- Refusals ------------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path: Path) -> Any:
    """A dump and its archive, with a manifest of the test's."""

    def make(**manifest: Any) -> tuple[Path, Path]:
        dump, files = tmp_path / "a.dump", tmp_path / "a.tar"
        dump.write_bytes(b"dump")
        digest = {"dump_sha256": hashlib.sha256(b"dump").hexdigest()}
        said = json.dumps(MANIFEST | digest | manifest).encode()
        with tarfile.open(files, "w") as made:
            made.addfile(member(archive.MANIFEST, size=len(said)), io.BytesIO(said))
        return dump, files

    return make


def test_a_dump_of_another_backup_is_refused(db, pair):
    dump, files = pair(dump_sha256="0" * 64)
    with pytest.raises(CommandError, match="is not the dump that belongs to"):
        call_command("restore", dump, files)


def test_a_backup_of_a_newer_amber_is_refused(db, pair):
    with pytest.raises(BackupError, match=r"newer Amber.*chats\.9999_future"):
        restore.restore_backup(*pair(migrations=["chats.9999_future"]))


def test_programs_that_are_too_old_are_named(db, monkeypatch):
    monkeypatch.setattr(programs, "_major", lambda _: 9)
    with pytest.raises(BackupError, match=r"The server is Postgres \d+ and needs a pg_dump"):
        programs.programs()


def test_a_folder_that_nobody_can_write_to_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CommandError, match=f"cannot be written to {folder}: "):
            call_command("backup", str(folder))


BEGIN: Final = """
import sys, time
from pathlib import Path
import django
django.setup()
from amber.backups.backup import _made_whole
with _made_whole(Path(sys.argv[1])) as unfinished:
    unfinished.write_text("half")
    print(unfinished, flush=True)
    time.sleep(600)
"""


def test_what_a_killed_backup_left_is_removed_by_the_next_into_that_folder(
    db, tmp_path, monkeypatch
):
    begin = [sys.executable, "-c", BEGIN, str(tmp_path / "amber-20310102T000000Z.dump")]
    (tmp_path / ".other.unfinished").write_text("somebody else's")
    monkeypatch.setattr(backup, "_dump", Mock(side_effect=BackupError("It ends here.")))
    with subprocess.Popen(begin, stdout=subprocess.PIPE, text=True) as begun:
        try:
            assert begun.stdout
            unfinished = Path(begun.stdout.readline().strip())
            with pytest.raises(BackupError, match="It ends here"):
                make_backup(tmp_path)
            assert unfinished.read_text() == "half", "it is being made"
        finally:
            begun.kill()
    assert unfinished.exists()
    with pytest.raises(BackupError, match="It ends here"):
        make_backup(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [".other.unfinished"]


def test_a_second_backup_of_the_same_second_does_not_spoil_the_first(db, tmp_path, monkeypatch):
    second = datetime(2031, 1, 2, tzinfo=UTC)
    monkeypatch.setattr(backup, "datetime", Mock(now=Mock(return_value=second)))
    begun = tmp_path / ".amber-20310102T000000Z.dump.unfinished"
    with begun.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("half")
        held.flush()
        with pytest.raises(CommandError, match="Another backup is being made"):
            call_command("backup", str(tmp_path))
    assert begun.read_text() == "half"


def test_the_password_stands_on_no_command_line(settings, monkeypatch, db):
    monkeypatch.setitem(connection.settings_dict, "PASSWORD", "s3cret")
    assert "s3cret" not in programs.conninfo()
    assert programs.environment()["PGPASSWORD"] == "s3cret"


# -- There and back ------------------------------------------------------------------------------


@pytest.fixture
def stored(settings: Any, tmp_path: Path) -> Path:
    folder = tmp_path / "var" / "files"
    folder.mkdir(parents=True)
    settings.AMBER_VAR_DIR, settings.MEDIA_ROOT = folder.parent, folder
    return folder


@pytest.fixture
def alone(transactional_db: None) -> None:
    """Disconnect whoever is left on the tests' database: a thread that outlives an earlier test
    holds its connection, and nothing is restored while anybody is connected."""
    disconnect()
    disconnect_others(programs.conninfo(), connection.settings_dict["NAME"])


def disconnect() -> None:
    """Close the connections of this process's pool."""
    connection.close()
    if pool := getattr(connection, "pool", None):
        pool.close()
        connection._connection_pools.clear()  # type: ignore[attr-defined]


def back_up(folder: Path) -> tuple[Path, Path]:
    made = make_backup(folder)
    return made.dump, made.files


@pytest.mark.usefixtures("alone")
@pytest.mark.django_db(transaction=True)
def test_everything_comes_back_and_what_came_later_is_gone(alice, stored, tmp_path):
    (stored / "note").write_text("as it was")
    File.objects.create(
        organization=alice.organization,
        user=alice.user,
        name="note",
        path="note",
        size=9,
        mime_type="text/plain",
        file_hash="0" * 64,
    )
    before = Organization.objects.count()
    dump, files = back_up(tmp_path / "backups")
    assert {path.stat().st_mode & 0o777 for path in (dump, files)} == {0o600}
    Organization.objects.create(name="Later")
    (stored / "note").write_text("changed since")
    (stored / "later").write_text("came since")

    restored = restore.restore_backup(dump, files)
    assert (restored.files, restored.missing_files, restored.waiting_migrations) == (1, [], 0)
    assert Organization.objects.count() == before
    assert [path.name for path in stored.iterdir()] == ["note"]
    assert (stored / "note").read_text() == "as it was"
    assert restored.replaced_files is not None
    assert (restored.replaced_files / "note").read_text() == "changed since"
    assert [path.name for path in stored.parent.glob("files.*")] == [restored.replaced_files.name]


def new_note(persona: Persona) -> str:
    """Return the path of a file of theirs, whose bytes are "as it was"."""
    path = file_bytes.write_bytes(Payload.of(b"as it was"))
    File.objects.create(
        organization=persona.organization,
        user=persona.user,
        name="note",
        path=path,
        size=9,
        mime_type="text/plain",
        file_hash="0" * 64,
    )
    return path


@pytest.mark.usefixtures("alone")
@pytest.mark.django_db(transaction=True)
def test_files_come_back_into_a_bucket(alice, stored, bucket_files, tmp_path):
    """And stay there, if the backup is of the database alone: what is missing is named then."""
    path = new_note(alice)
    pair = back_up(tmp_path / "backups")
    alone = make_backup(tmp_path / "alone", with_files=False)
    assert alone.missing_files == 0
    bucket_files.empty()
    assert restore.restore_backup(alone.dump, alone.files).missing_files == [path]
    restored = restore.restore_backup(*pair)
    assert (restored.files, restored.missing_files, restored.replaced_files) == (1, [], None)
    assert bucket_files.body(f"amber/{path}") == b"as it was"
    assert [each.name for each in stored.parent.iterdir()] == ["files"], "nothing is left unpacked"


@pytest.mark.usefixtures("alone")
@pytest.mark.django_db(transaction=True)
def test_files_come_back_onto_a_volume(alice, settings, tmp_path, monkeypatch):
    """Its folder cannot be renamed, nor is there room beside it: as a pod's, or a network's."""
    volume = tmp_path / "mnt" / "files"
    (tmp_path / "var").mkdir()
    settings.AMBER_VAR_DIR, settings.MEDIA_ROOT = tmp_path / "var", volume
    path = new_note(alice)
    pair = back_up(tmp_path / "backups")
    is_mount, rename = Path.is_mount, Path.rename
    monkeypatch.setattr(Path, "is_mount", lambda self: self == volume or is_mount(self))

    def rename_others(self: Path, target: Path) -> Path:
        if volume in (self, target):
            raise OSError(errno.EBUSY, "Device or resource busy", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_others)
    (volume / path).write_bytes(b"damaged")
    (volume / "later").write_bytes(b"came since")
    restored = restore.restore_backup(*pair)
    assert (restored.files, restored.missing_files, restored.replaced_files) == (1, [], None)
    assert (volume / path).read_bytes() == b"as it was"
    assert sorted(each.name for each in volume.iterdir()) == [path[:2], "later"]
    assert not any((tmp_path / "var").iterdir()), "nothing is left unpacked"
    assert [each.name for each in volume.parent.iterdir()] == ["files"]


@pytest.mark.usefixtures("alone")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["amber chat worker here:7", ""])
def test_it_is_refused_while_somebody_is_on_the_database(
    alice, stored, tmp_path, monkeypatch, name
):
    monkeypatch.setenv("PGAPPNAME", "amber restore here:8")
    disconnect()
    pair = back_up(tmp_path / "backups")
    with psycopg.connect(programs.conninfo(), application_name=name) as working:
        with pytest.raises(BackupError, match=f"Stop Amber first.*{name or 'without a name'}"):
            restore.restore_backup(*pair)
        assert working.execute("SELECT count(*) FROM accounts_user").fetchone() != (0,)
    assert restore.restore_backup(*pair).rows > 0


@pytest.mark.usefixtures("alone")
@pytest.mark.django_db(transaction=True)
def test_a_restore_that_fails_changes_nothing(alice, stored, tmp_path):
    """A row fewer than the manifest promises: noticed before the commit."""
    (stored / "note").write_text("as it was")
    dump, files = back_up(tmp_path / "backups")
    manifest = archive.read_manifest(files)
    manifest["rows"]["accounts_user"] += 1
    lying = tmp_path / "lying.tar"
    archive.write_archive(lying, FolderStorage(location=stored), lambda _: manifest)
    Organization.objects.create(name="Later")
    with pytest.raises(BackupError, match="accounts_user does not have"):
        restore.restore_backup(dump, lying)
    assert Organization.objects.filter(name="Later").exists()
    assert (stored / "note").read_text() == "as it was"
    assert [path.name for path in stored.parent.iterdir()] == ["files"]
