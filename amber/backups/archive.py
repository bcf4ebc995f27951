"""Pack and unpack the stored files: a tar with the files under `files/`, and a manifest at its end.

Unpacking trusts nothing: an archive that holds a link, a device, or a name that leads out of the
folder is refused. Whoever restores it runs as the account that owns all of Amber.
"""

import contextlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from amber.backups.programs import BackupError
from amber.lib.storage.files import FileStorage

MANIFEST: Final = "manifest.json"
FILES: Final = "files"
MAX_MANIFEST_BYTES: Final = 100_000_000
"""A manifest names missing files at a hundred bytes each; a larger one is not Amber's."""


def write_archive(
    path: Path, files: FileStorage | None, manifest: Callable[[set[str]], dict[str, Any]]
) -> None:
    """Pack the files of a storage; `manifest` is called last, with the names that were packed.

    None: the archive has a manifest alone. Raises OSError if the storage cannot be reached.

    A file that is deleted meanwhile is left out: its row is deleted, too.
    """
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        packed = _pack(archive, files) if files else set()
        text = json.dumps(manifest(packed)).encode()
        _add(archive, MANIFEST, len(text), io.BytesIO(text))


def _pack(archive: tarfile.TarFile, files: FileStorage) -> set[str]:
    packed: set[str] = set()
    for stored in files.walk():
        with contextlib.suppress(FileNotFoundError), files.open(stored.name) as opened:
            _add(archive, f"{FILES}/{stored.name}", opened.size, opened)
            packed.add(stored.name)
    return packed


def _add(archive: tarfile.TarFile, name: str, size: int, data: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    archive.addfile(member, data)


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of an archive. Raises BackupError."""
    with _open_archive(path) as archive:
        for member in archive:
            if member.name == MANIFEST and member.isreg() and member.size <= MAX_MANIFEST_BYTES:
                taken = archive.extractfile(member)
                found: dict[str, Any] = json.load(taken) if taken else {}
                return found
    raise BackupError(f"{path} has no manifest, so `manage.py backup` did not make it.")


def unpack(path: Path, folder: Path) -> set[str]:
    """Unpack the files into a new folder; return their names. On BackupError nothing is left."""
    folder.mkdir(mode=0o700, parents=True)
    try:
        with _open_archive(path) as archive:
            return set(_unpack_members(archive, folder))
    except (BackupError, OSError, tarfile.TarError):
        shutil.rmtree(folder)
        raise


def _unpack_members(archive: tarfile.TarFile, folder: Path) -> Iterator[str]:
    for member in archive:
        if member.name == MANIFEST:
            continue
        name = _safe_name(member)
        target = folder / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = archive.extractfile(member)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as written:
            if data is not None:
                shutil.copyfileobj(data, written)
        yield name


def _safe_name(member: tarfile.TarInfo) -> str:
    """Return the name relative to the folder of files. Raises BackupError."""
    name = PurePosixPath(member.name)
    is_inside = name.parts[:1] == (FILES,) and len(name.parts) > 1 and ".." not in name.parts
    if not member.isreg() or not is_inside:
        raise BackupError(f"The archive holds {member.name!r}, which is in no backup of Amber.")
    return PurePosixPath(*name.parts[1:]).as_posix()


def _open_archive(path: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(path, "r:")
    except (OSError, tarfile.TarError) as error:
        raise BackupError(f"{path} is not an archive of files: {error}") from None
