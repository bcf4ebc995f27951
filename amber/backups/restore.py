"""Restore a backup, all or nothing, and only while no process of Amber is on the database.

The dump is loaded in one transaction, which first empties the database and last compares every
table with the manifest. Files are unpacked beside the old ones and replace them once it is
committed; in a bucket, and on a volume, whose folder cannot be replaced, they are added before.
Refuses a backup of a newer Amber: this code would not know what to do with its rows.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.files.base import File as StoredBytes
from django.core.files.storage import storages
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from amber import database_roles
from amber.backups import programs
from amber.backups.archive import read_manifest, unpack
from amber.backups.backup import sha256_of
from amber.backups.programs import BackupError
from amber.lib.secrets import DecryptError, decrypt_column
from amber.lib.storage.files import FileStorage, file_storage
from amber.lib.storage.folder import FolderStorage
from amber.lib.storage.moving import MovingStorage
from libraries.models import File
from providers.models import Provider

SESSION_SECONDS: Final = 2.0
LOCK_SECONDS: Final = 10
"""A session that somebody left open must not make a restore wait forever."""

_EMPTY: Final = f"""BEGIN;
SET LOCAL lock_timeout = '{LOCK_SECONDS}s';
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
GRANT USAGE ON SCHEMA public TO PUBLIC;
"""

_SESSIONS_SQL: Final = """
SELECT application_name, pid, coalesce(host(client_addr), 'this machine') FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
  AND pid <> pg_backend_pid() AND application_name <> current_setting('application_name')
  AND (application_name = '' OR application_name LIKE 'amber %%')
ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The result of a restore.

    `waiting_migrations` are applied by the next start. `missing_files` are named by rows and
    existed when the backup was made. `locked_keys` names the providers whose stored keys do not
    open with this installation's AMBER_SECRET_KEYS.
    """

    rows: int
    files: int
    waiting_migrations: int
    missing_files: list[str]
    locked_keys: list[str]
    replaced_files: Path | None


def restore_backup(dump: Path, files: Path) -> RestoreResult:
    """Replace database and files by those of the backup.

    Raises BackupError; then both are as before.
    """
    manifest = read_manifest(files)
    if not dump.is_file() or sha256_of(dump) != manifest["dump_sha256"]:
        raise BackupError(f"{dump} is incomplete, or is not the dump that belongs to {files}.")
    waiting = _waiting_migrations(manifest["migrations"])
    folder = programs.programs()
    _refuse_while_used()
    programs.run([folder / "pg_restore", "--list", dump])  # fails on a dump of a later version
    storage = _storage()
    stored = Path(settings.MEDIA_ROOT)
    is_replaced = isinstance(storage, FolderStorage) and _can_be_renamed(stored)
    beside = stored if is_replaced else Path(settings.AMBER_VAR_DIR) / "files"
    unpacked = beside.with_name(f"{beside.name}.{os.getpid()}.unpacked")
    names = unpack(files, unpacked)
    replaced = None
    try:
        if len(names) != manifest["files"]:
            raise BackupError(f"{files} holds only {len(names)} of {manifest['files']} files.")
        present = names if is_replaced else _add(unpacked, storage)
        _load(folder, dump, manifest["rows"])
        if is_replaced and manifest.get("with_files", True):
            replaced = _change_places(unpacked, stored)
        if not waiting:  # else the next start does it, after its migrations
            database_roles.arrange_installation(connection)
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
    named = set(File.objects.values_list("path", flat=True))
    if is_replaced:
        present = {each.name for each in storage.walk()}
    return RestoreResult(
        rows=sum(manifest["rows"].values()),
        files=len(names),
        waiting_migrations=len(waiting),
        missing_files=sorted(named - present - set(manifest["missing_files"])),
        locked_keys=_locked_keys() if not waiting else [],
        replaced_files=replaced,
    )


def _storage() -> FileStorage:
    """Return the storage to restore files to. Raises BackupError while files move."""
    if isinstance(storages["default"], MovingStorage):
        raise BackupError("Finish moving the files first: remove AMBER_FILES_OLD_URL.")
    return file_storage()


def _can_be_renamed(folder: Path) -> bool:
    """Return whether another folder can take its place: not that of a volume that is mounted there."""
    parent = next(each for each in folder.parents if each.exists())
    return not folder.is_mount() and os.access(parent, os.W_OK | os.X_OK)


def _add(folder: Path, storage: FileStorage) -> set[str]:
    """Add the files to a bucket or a volume, and return the names of all that it then holds.

    Nobody looks for them until their rows are restored; files that came after the backup stay until
    a periodic job finds that no row names them. Raises BackupError.
    """
    try:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            name = path.relative_to(folder).as_posix()
            if isinstance(storage, FolderStorage):
                storage.delete(name)  # it would keep the one that is there, and take another name
            with path.open("rb") as opened:
                storage.save(name, StoredBytes(opened))
        return {each.name for each in storage.walk()}
    except OSError as error:
        raise BackupError(f"Nothing was restored. {error}") from error


def _waiting_migrations(applied: list[str]) -> set[str]:
    """Return the migrations to apply after. Raises BackupError if the backup has unknown ones."""
    loader = MigrationLoader(None)
    known = {f"{app}.{name}" for app, name in loader.disk_migrations}
    replaced = {
        f"{app}.{name}" for m in loader.disk_migrations.values() for app, name in m.replaces
    }
    if unknown := set(applied) - known - replaced:
        raise BackupError(
            f"The backup is of a newer Amber. Unknown here: {', '.join(sorted(unknown))}."
        )
    return known - set(applied)


def _refuse_while_used() -> None:
    """Raise BackupError if somebody is connected, and stays so: Postgres ends the sessions of
    processes that were killed a moment later."""
    sessions = _sessions()
    deadline = time.monotonic() + SESSION_SECONDS
    while sessions and time.monotonic() < deadline:
        time.sleep(0.1)
        sessions = _sessions()
    if sessions:
        found = "; ".join(
            f"{name or 'a process without a name'} (Postgres process {pid}, from {place})"
            for name, pid, place in sessions
        )
        raise BackupError(f"Stop Amber first. Connected to the database: {found}.")


def _sessions() -> list[tuple[str, int, str]]:
    with connection.cursor() as cursor:
        cursor.execute(_SESSIONS_SQL)
        found: list[tuple[str, int, str]] = cursor.fetchall()
    return found


def _load(folder: Path, dump: Path, rows: Mapping[str, int]) -> None:
    """Load the dump. On BackupError nothing has changed: only the script's last line commits."""
    connection.close()
    psql: list[str | Path] = [
        folder / "psql",
        "-X",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-d",
        programs.conninfo(),
        "-f",
        "-",
    ]
    reading: list[str | Path] = [
        folder / "pg_restore",
        "--no-owner",
        "--no-privileges",
        "-f",
        "-",
        dump,
    ]
    environ = programs.environment()
    with tempfile.TemporaryFile() as complaints:
        with subprocess.Popen(
            psql,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
        ) as loading:
            assert loading.stdin is not None
            with contextlib.suppress(BrokenPipeError), loading.stdin as script:
                script.write(_EMPTY.encode())
                script.flush()
                read = subprocess.run(
                    reading, env=environ, stdout=script, stderr=complaints, check=False
                )
                if read.returncode == 0:
                    script.write(f"{_comparison(rows)}COMMIT;\n".encode())
        complaints.seek(0)
        said = complaints.read().decode(errors="replace").strip()
    if loading.returncode or read.returncode:
        raise BackupError(f"Nothing was restored. {said}")


def _comparison(rows: Mapping[str, int]) -> str:
    """Return SQL that fails unless every table has as many rows as the manifest says."""
    compared = [
        sql.SQL(
            "IF (SELECT count(*) FROM public.{table}) <> {count} THEN "
            "RAISE EXCEPTION 'The table % does not have {count} rows.', {name}; END IF;\n"
        )
        .format(table=sql.Identifier(table), count=sql.Literal(count), name=sql.Literal(table))
        .as_string(None)
        for table, count in rows.items()
    ]
    return f"DO $compare$ BEGIN\n{''.join(compared)}END $compare$;\n"


def _change_places(unpacked: Path, stored: Path) -> Path | None:
    """Put the restored files in place; return where the old ones are kept, if there were any."""
    replaced = None
    if stored.exists():
        replaced = stored.with_name(f"{stored.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
        stored.rename(replaced)
        if not any(replaced.iterdir()):
            replaced.rmdir()
            replaced = None
    stored.parent.mkdir(parents=True, exist_ok=True)
    unpacked.rename(stored)
    return replaced


def _locked_keys() -> list[str]:
    locked = []
    for provider in Provider.objects.exclude(api_key_sealed="").order_by("name"):
        try:
            decrypt_column(provider, "api_key")
        except DecryptError:
            locked.append(provider.name)
    return locked
