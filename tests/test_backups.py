"""Archives of files, and what a restore refuses before it touches anything."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from amber.backups import archive, programs, restore
from amber.backups.programs import BackupError

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

    archive.write_archive(tmp_path / "a.tar", stored, manifest)
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
    with pytest.raises(BackupError, match="which no backup of Amber does"):
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
    with pytest.raises(CommandError, match="is not the dump that"):
        call_command("restore", dump, files)


def test_a_backup_of_a_newer_amber_is_refused(db, pair):
    with pytest.raises(BackupError, match=r"newer Amber.*chats\.9999_future"):
        restore.restore_backup(*pair(migrations=["chats.9999_future"]))


def test_programs_that_are_too_old_are_named(db, monkeypatch):
    monkeypatch.setattr(programs, "_major", lambda _: 9)
    with pytest.raises(BackupError, match=r"The server is Postgres \d+; pg_dump is wanted in"):
        programs.programs()


def test_the_password_stands_on_no_command_line(settings, monkeypatch, db):
    monkeypatch.setitem(connection.settings_dict, "PASSWORD", "s3cret")
    assert "s3cret" not in programs.conninfo()
    assert programs.environment()["PGPASSWORD"] == "s3cret"
