"""Keep files in a folder of this machine, or of a network file system."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage

from amber.lib.storage.files import StoredFile


class FolderStorage(FileSystemStorage):
    """Django's own storage, with what Amber needs besides. Links to other files are left out."""

    is_seekable = True

    def _save(self, name: str, content: Any) -> str:
        """Write under another name, and rename the file once it is whole.

        While files are moved to another storage, any that is found is read, even by a parser, whose text is kept.
        """
        unfinished = f"{name}.unfinished"
        try:
            unfinished = super()._save(unfinished, content)  # type: ignore[misc]  # not in the stubs
            Path(self.path(unfinished)).replace(self.path(name))
        except BaseException:
            self.delete(unfinished)
            raise
        return name

    def walk(self, prefix: str = "") -> Iterator[StoredFile]:
        """List the files in the folder, whole subfolders at a time."""
        root = Path(self.location)
        below = root / prefix.rpartition("/")[0]
        for entry in _files_in(str(below)):
            name = Path(entry.path).relative_to(root).as_posix()
            if name.startswith(prefix):
                with suppress(FileNotFoundError):  # deleted meanwhile
                    found = entry.stat(follow_symlinks=False)
                    written_at = datetime.fromtimestamp(found.st_mtime, UTC)
                    yield StoredFile(name, found.st_size, written_at)

    def check(self) -> None:
        folder = Path(self.location)
        while not folder.exists():  # it is made with the first file
            folder = folder.parent
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(f"The folder {folder} cannot be written.")

    def link(self, name: str, *, mime_type: str) -> str:
        return ""


def _files_in(folder: str) -> Iterator["os.DirEntry[str]"]:
    """List the files below a folder in order, with one folder of each depth in memory."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files_in(entry.path)
        elif entry.is_file(follow_symlinks=False):
            yield entry
