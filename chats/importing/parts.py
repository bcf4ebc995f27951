"""Open what somebody exported elsewhere: a JSON text, a zip of files, or several files at once.

Parts have names, which look anything up but a path: nothing is ever written under them. Each part is
read when it is asked for, and never further than a limit: what a zip says of its sizes is not
believed.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Final

from amber.lib.errors import Invalid, TooLarge

MAX_PARTS: Final = 20_000
"""In one zip. An export of ten years of talk has some thousand files."""

# ChatGPT's, in one file or in many. Where there is one, other texts of the archive are no chats.
_CONVERSATIONS: Final = re.compile(r"conversations(-\d{1,6})?\.json", re.IGNORECASE)
_TEXTS: Final = (".json", ".jsonl")
_FILE_ID: Final = re.compile(r"file[-_][A-Za-z0-9]+")
# The second begins an empty one.
_STARTS_OF_ZIPS: Final = (b"PK\3\4", b"PK\5\6")
_DIRECTORY_ENTRY: Final = b"PK\1\2"
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Others unpack to more, slower, and no export uses them."""
_UNREADABLE: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError),
    *(OSError, RuntimeError, ValueError, OverflowError),
)
"""What `zipfile` raises for damaged and for hostile archives."""

DAMAGED: Final = "The zip is damaged or incomplete. Download the export again."

Reader = Callable[[int], bytes]
"""Returns a part's bytes, as many as it is given at most."""


class Parts:
    """The parts of an export, by name. Unpacks at most `total_bytes` in its whole life."""

    def __init__(self, readers: Iterable[tuple[str, Reader]], *, total_bytes: int) -> None:
        self._readers = dict(readers)
        self._left_bytes = total_bytes
        self._by_file_id: dict[str, str] = {}
        for name in self._readers:
            if found := _FILE_ID.match(PurePosixPath(name).name):
                self._by_file_id.setdefault(found[0], name)

    def texts(self, *, at_most: int) -> Iterator[tuple[str, bytes]]:
        """Yield the texts that may hold chats, by name. Raises TooLarge, Invalid."""
        # macOS puts a companion of each file there, with the same ending.
        names = [name for name in self._readers if "__MACOSX" not in name]
        some = [n for n in names if _CONVERSATIONS.fullmatch(PurePosixPath(n).name)]
        all_texts = [n for n in names if PurePosixPath(n).suffix.lower() in _TEXTS]
        for name in sorted(some or all_texts or (names if len(names) == 1 else [])):
            yield name, self.read(name, at_most=at_most)

    def find(self, reference: str) -> str | None:
        """Return the name of the part that a chat means by this, which may begin with an address's
        scheme."""
        bare = reference.rpartition("://")[2].partition("#")[0]
        found = _FILE_ID.match(bare)
        return self._by_file_id.get(found[0]) if found else None

    def read(self, name: str, *, at_most: int) -> bytes:
        """Return a part's bytes. Raises TooLarge, Invalid."""
        limit = min(at_most, self._left_bytes)
        try:
            # One byte more tells that there is more.
            data = self._readers[name](limit + 1)
        except _UNREADABLE:
            raise Invalid(DAMAGED) from None
        if len(data) > limit:
            raise TooLarge(f"{PurePosixPath(name).name[:80]} has more than {limit:,} bytes.")
        self._left_bytes -= len(data)
        return data


def open_parts(files: Iterable[tuple[str, bytes]], *, total_bytes: int) -> Parts:
    """Return the parts of what was uploaded: the files themselves, and what is in zips among them.

    Raises Invalid.
    """
    readers: list[tuple[str, Reader]] = []
    for name, data in files:
        if data.startswith(_STARTS_OF_ZIPS):
            # Before it is opened: `zipfile` makes an object of each entry then.
            if data.count(_DIRECTORY_ENTRY) > MAX_PARTS:
                raise Invalid(f"The zip has more than {MAX_PARTS:,} files.")
            readers += _members(io.BytesIO(data))
        else:
            readers.append((name, partial(_first_bytes, data)))
    return Parts(readers, total_bytes=total_bytes)


def open_path(path: Path, *, total_bytes: int) -> Parts:
    """Return the parts of a file or a folder. Raises Invalid, OSError."""
    path.stat()
    readers: list[tuple[str, Reader]]
    if path.is_dir():
        inside = sorted(each for each in path.rglob("*") if each.is_file())
        readers = [(str(each.relative_to(path)), partial(_read_path, each)) for each in inside]
    elif zipfile.is_zipfile(path):
        readers = _members(path)
    else:
        readers = [(path.name, partial(_read_path, path))]
    return Parts(readers, total_bytes=total_bytes)


def _members(source: Path | IO[bytes]) -> list[tuple[str, Reader]]:
    try:
        archive = zipfile.ZipFile(source)
    except _UNREADABLE:
        raise Invalid(DAMAGED) from None
    members = [member for member in archive.infolist() if not member.is_dir()]
    return [(member.filename, partial(_read_member, archive, member)) for member in members]


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, at_most: int) -> bytes:
    if member.compress_type not in _METHODS:
        raise NotImplementedError
    with archive.open(member) as part:
        return part.read(at_most)


def _read_path(path: Path, at_most: int) -> bytes:
    with path.open("rb") as stream:
        return stream.read(at_most)


def _first_bytes(data: bytes, at_most: int) -> bytes:
    return data[:at_most]
