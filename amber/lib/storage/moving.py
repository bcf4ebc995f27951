"""Read files from two storages while they move from one to the other (`manage.py move_files`).

New files go to the current storage. A file is looked for there first, and then in the old one, so that it
is found wherever it is; a file that is deleted is deleted in both.
"""

from collections.abc import Iterator
from contextlib import suppress
from heapq import merge
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.core.files.storage import Storage

from amber.lib.storage.files import StoredFile, open_storage


class MovingStorage(Storage):
    """`current` and `old` are entries of STORAGES."""

    is_seekable = False

    def __init__(self, *, current: dict[str, Any], old: dict[str, Any]) -> None:
        self.current = open_storage(current)
        self.old = open_storage(old)

    def _open(self, name: str, mode: str = "rb") -> Any:
        try:
            return self.current.open(name, mode)
        except FileNotFoundError:
            return self.old.open(name, mode)

    def _save(self, name: str, content: Any) -> str:
        return self.current.save(name, content)

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name  # the current storage finds one

    def delete(self, name: str) -> None:
        """Delete both, the old one also if the current one fails."""
        try:
            self.current.delete(name)
        finally:
            self.old.delete(name)

    def exists(self, name: str) -> bool:
        with suppress(FileNotFoundError):
            return self.size(name) >= 0
        return False

    def size(self, name: str) -> int:
        try:
            return self.current.size(name)
        except FileNotFoundError:
            return self.old.size(name)

    def walk(self, prefix: str = "") -> Iterator[StoredFile]:
        """List the files of both, each name once."""
        both = merge(self.current.walk(prefix), self.old.walk(prefix), key=attrgetter("name"))
        return (next(same) for _, same in groupby(both, key=attrgetter("name")))

    def check(self) -> None:
        self.current.check()
        self.old.check()

    def link(self, name: str, *, mime_type: str) -> str:
        return ""  # the file may still be in the other storage
