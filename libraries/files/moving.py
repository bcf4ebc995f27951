"""Copy files from the old storage to the current one while Amber runs, and say how many are where.

Reads the names from the rows, so that what nobody refers to stays behind. A file that is there in its
full size is not copied again: a run that broke off is continued by the next. What was copied is compared
with the row's hash on the way; before anything is erased from the old storage, the current one is read
back and compared, too.
"""

import hashlib
import io
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from django.core.files.base import File as StoredBytes

from amber.lib.database.connections import release_connections
from amber.lib.storage.files import FileStorage
from libraries.files.payload import PIECE_BYTES
from libraries.files.storage import SPOOLED_BYTES, random_path
from libraries.models import File

AT_ONCE: Final = 8
"""Most files are small: their time goes into round trips, not into bytes."""
BATCH_ROWS: Final = 1_000

COPIED: Final = "copied"
PRESENT: Final = "present"
MISSING: Final = "missing"
DAMAGED: Final = "damaged"
ERASED: Final = "erased"
OUTCOMES: Final = (COPIED, PRESENT, MISSING, DAMAGED, ERASED)


@dataclass(frozen=True, slots=True)
class NamedFile:
    """What a row says of its bytes."""

    path: str
    size: int
    sha256: str


@dataclass(slots=True)
class MoveReport:
    """How many files were copied, were there before, and so on; and the names of those to look at."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    unwell: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.counts.values()) - self.counts[ERASED]

    def add(self, path: str, outcome: str) -> None:
        self.counts[outcome] += 1
        if outcome in (MISSING, DAMAGED):
            self.unwell.append(f"{path} ({outcome})")


def is_one_place(old: FileStorage, current: FileStorage) -> bool:
    """Return whether both storages are the same place, whatever their addresses look like.

    A file written to the current one is looked for in the old one. If it is there, erasing the old
    storage would lose everything. Raises OSError.
    """
    name = current.save(random_path(), StoredBytes(io.BytesIO(b"where is this?")))
    try:
        return _size(old, name) is not None
    finally:
        current.delete(name)


def copy_files(
    old: FileStorage, current: FileStorage, *, tell: Callable[[MoveReport], None]
) -> MoveReport:
    """Copy what the rows name. `tell` is called after each batch. Raises OSError: run it again."""
    return _for_each_file(partial(_copy, old, current), tell)


def erase_copied(
    old: FileStorage, current: FileStorage, *, tell: Callable[[MoveReport], None]
) -> MoveReport:
    """Erase from the old storage what the current one has, as the hash of every byte proves."""
    return _for_each_file(partial(_erase_if_copied, old, current), tell)


def _for_each_file(
    work: Callable[[NamedFile], list[str]], tell: Callable[[MoveReport], None]
) -> MoveReport:
    report = MoveReport()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="move-files") as threads:
        for batch in _batches():
            for file, outcomes in zip(batch, threads.map(work, batch), strict=True):
                for outcome in outcomes:
                    report.add(file.path, outcome)
            tell(report)
    return report


def _batches() -> Iterator[list[NamedFile]]:
    """Read the rows in the order of their ids, which grow: files that are added meanwhile come last."""
    last = None
    while True:
        rows = File.objects.order_by("pk").values_list("pk", "path", "size", "file_hash")
        found = list((rows.filter(pk__gt=last) if last else rows)[:BATCH_ROWS])
        release_connections()
        if not found:
            return
        last = found[-1][0]
        yield [NamedFile(*row[1:]) for row in found]


def _copy(old: FileStorage, current: FileStorage, file: NamedFile) -> list[str]:
    if _size(current, file.path) == file.size:
        return [PRESENT]
    outcome = _transfer(old, current, file)
    if outcome == MISSING and _size(current, file.path) == file.size:
        return [PRESENT]  # uploaded, or copied by another run, in this moment
    return [outcome]


def _erase_if_copied(old: FileStorage, current: FileStorage, file: NamedFile) -> list[str]:
    """Erase the old copy; or copy it again if the current one is not whole."""
    if _sha256(current, file.path) != file.sha256:
        return [_transfer(old, current, file)]
    if _size(old, file.path) is None:
        return [PRESENT]
    old.delete(file.path)
    return [PRESENT, ERASED]


def _transfer(old: FileStorage, current: FileStorage, file: NamedFile) -> str:
    """Copy the file, unless it is damaged or missing."""
    digest = hashlib.sha256()
    with tempfile.SpooledTemporaryFile(SPOOLED_BYTES) as copy:
        try:
            with old.open(file.path) as source:
                while piece := source.read(PIECE_BYTES):
                    digest.update(piece)
                    copy.write(piece)
        except FileNotFoundError:
            return MISSING
        if digest.hexdigest() != file.sha256:
            return DAMAGED
        current.delete(file.path)  # what a run that broke off may have left of it
        current.save(file.path, StoredBytes(copy, name=file.path))
    return COPIED


def _sha256(storage: FileStorage, path: str) -> str:
    digest = hashlib.sha256()
    try:
        with storage.open(path) as stored:
            while piece := stored.read(PIECE_BYTES):
                digest.update(piece)
    except FileNotFoundError:
        return ""
    return digest.hexdigest()


def _size(storage: FileStorage, path: str) -> int | None:
    try:
        return storage.size(path)
    except FileNotFoundError:
        return None
