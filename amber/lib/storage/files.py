"""Say what every storage of files can do, and return the installation's own."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, cast

from django.core.files.storage import storages


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as its storage lists it."""

    name: str
    size: int
    modified_at: datetime


class FileStorage(Protocol):
    """A storage. Each method raises OSError when the storage cannot be reached."""

    is_seekable: bool
    """Whether files that it opens can be read again from any place, as those of a disk."""

    def open(self, name: str, mode: str = "rb") -> Any:
        """Open a file for reading. Raises FileNotFoundError."""

    def save(self, name: str, content: Any) -> str:
        """Write a file, and return the name that it got."""

    def delete(self, name: str) -> None:
        """Delete a file. One that is not there counts as deleted."""

    def size(self, name: str) -> int:
        """Return the number of bytes. Raises FileNotFoundError."""

    def walk(self, prefix: str = "") -> Iterator[StoredFile]:
        """List all files whose names begin with this, in the order of their names."""

    def check(self) -> None:
        """Raise OSError unless files can be read and written. One request at most."""

    def link(self, name: str, *, mime_type: str) -> str:
        """Return an address at which anybody may read the file for some minutes, or nothing."""


def file_storage() -> FileStorage:
    """Return the installation's storage."""
    return cast(FileStorage, storages["default"])


def open_storage(entry: dict[str, Any]) -> FileStorage:
    """Return the storage of an entry of STORAGES."""
    return cast(FileStorage, storages.create_storage(entry))
