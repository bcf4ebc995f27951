"""Make a backup: dump and archive of one moment, while Amber runs or not.

The dump and the counts of the manifest share one snapshot of the database, so that a restore can be
checked table by table. Files are packed after it: one that came later is too many, which is
harmless.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

from amber.backups import programs
from amber.backups.archive import write_archive
from amber.backups.programs import BackupError
from amber.lib.storage.files import file_storage

_UNFINISHED: Final = ".unfinished"


@dataclass(frozen=True, slots=True)
class Backup:
    dump: Path
    files: Path
    rows: int
    missing_files: int


def make_backup(folder: Path, *, with_files: bool = True) -> Backup:
    """Write two new files into `folder`, readable by their owner only. Reads everything once.

    What a killed backup left there is removed first.

    Without files, for a storage that is backed up by other means, the archive has a manifest alone.

    Raises BackupError; then neither file exists.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BackupError(_unwritable(folder, error)) from error
    _remove_leftovers(folder)
    stem = f"amber-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    dump, files = folder / f"{stem}.dump", folder / f"{stem}.files.tar"
    with _made_whole(dump) as unfinished_dump, _made_whole(files) as unfinished_files:
        about = _dump(unfinished_dump)
        named: set[str] = set(about.pop("files"))
        missing: list[str] = []

        def manifest(packed: set[str]) -> dict[str, Any]:
            missing.extend(sorted(named - packed) if with_files else [])
            about_files = {"missing_files": missing, "files": len(packed), "with_files": with_files}
            return about | about_files

        try:
            write_archive(unfinished_files, file_storage() if with_files else None, manifest)
        except OSError as error:
            raise BackupError(f"The files cannot be packed: {error}") from error
    return Backup(dump, files, sum(about["rows"].values()), len(missing))


@contextlib.contextmanager
def _made_whole(path: Path) -> Iterator[Path]:
    """Give the block a private file, which gets its name if the block succeeds. Raises BackupError.

    It is locked meanwhile: the lock goes with the process, however that ends.
    """
    unfinished = path.with_name(f".{path.name}{_UNFINISHED}")
    another = f"Another backup is being made in {path.parent}. Wait for it."
    try:
        held = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BackupError(another) from None
    except OSError as error:
        raise BackupError(_unwritable(path.parent, error)) from error
    with os.fdopen(held, "wb"):
        # A folder without locks takes backups, too: what is killed there stays, as nothing tells that it was.
        with contextlib.suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        # The other backup took it for a leftover, in the moment before the lock.
        if not os.fstat(held).st_nlink:
            raise BackupError(another)
        try:
            yield unfinished
            unfinished.rename(path)
        finally:
            unfinished.unlink(missing_ok=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove the files of backups whose process is gone: whoever makes one holds its lock."""
    for leftover in folder.glob(f".amber-*{_UNFINISHED}"):
        # It is being made, somebody else's, or just gone; or the folder has no locks.
        with contextlib.suppress(OSError), leftover.open("r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftover.unlink()


def _unwritable(folder: Path, error: OSError) -> str:
    return f"The backup cannot be written to {folder}: {error.strerror}. Name a folder that you may write to."


def _dump(path: Path) -> dict[str, Any]:
    """Dump the database; return the manifest, with the `files` that its rows name."""
    pg_dump = programs.programs() / "pg_dump"
    with psycopg.connect(programs.conninfo(), **_password()) as held:
        held.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        held.read_only = True
        (snapshot,) = held.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
        rows = count_rows(held)
        names = held.execute("SELECT path FROM libraries_file").fetchall()
        applied = held.execute("SELECT app, name FROM django_migrations ORDER BY 1, 2").fetchall()
        at = ["-d", programs.conninfo(), "--snapshot", snapshot]
        programs.run([pg_dump, *at, "-Fc", "--no-owner", "--no-privileges", "-f", path])
    return {
        "amber": settings.AMBER_VERSION,
        "made_at": datetime.now(UTC).isoformat(),
        "dump_sha256": sha256_of(path),
        "migrations": [f"{app}.{name}" for app, name in applied],
        "rows": rows,
        "files": [name for (name,) in names],
    }


def count_rows(held: psycopg.Connection[Any]) -> dict[str, int]:
    """Return the number of rows of every table; partitions are counted with theirs."""
    tables = held.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind IN ('r', 'p') AND NOT relispartition"
    ).fetchall()
    counts = {}
    for (table,) in tables:
        counting = sql.SQL("SELECT count(*) FROM public.{}").format(sql.Identifier(table))
        (counts[table],) = held.execute(counting).fetchone() or (0,)
    return counts


def sha256_of(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _password() -> dict[str, Any]:
    given = connection.settings_dict["PASSWORD"]
    return {"password": given} if given else {}
