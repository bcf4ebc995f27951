"""Read the files of a fetched pack one after the other, unpacked by a child process.

The parent holds one file at a time. The end of the child means the same for a pack as for a
document (`parsing.child_process`).
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import BinaryIO, Final

from libraries.git.fetching import FetchedPack, GitRefused
from libraries.git.pack_child import DAMAGED
from libraries.parsing.child_process import TOO_BIG, TOO_SLOW, ChildEnded, ChildProcess, verdict
from libraries.parsing.confinement import ParserLimits
from libraries.parsing.result import Unreadable

UNPACK_LIMITS: Final = ParserLimits(cpu_seconds=120, wall_seconds=600)
"""Enough to unpack in pure Python, at 10 MB a second, and to store the files meanwhile."""
COMMAND: Final = ("-m", "libraries.git.pack_child")
TOO_MUCH: Final = "The repository is too large to be unpacked. Name the wanted files by `include`."
_PIECE_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class PathFilter:
    """Which files are wanted. `known` has the SHA-256 of those that are stored, by path.

    A file that is known comes without content.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    known: Mapping[str, str] = field(default_factory=dict)
    max_file_bytes: int = 20_000_000


@dataclass(frozen=True, slots=True)
class RepositoryFile:
    """A file of a repository. `data` is None if the file has not changed."""

    path: str
    data: bytes | None


class PackReader:
    """Iterates over the wanted files.

    Afterwards `skipped` counts those that are no documents, by reason, and `commit` is the one that
    was read.
    """

    def __init__(self, fetched: FetchedPack, wanted: PathFilter) -> None:
        self._fetched = fetched
        self._wanted = wanted
        self.skipped: dict[str, int] = {}
        self.commit = ""

    def __iter__(self) -> Iterator[RepositoryFile]:
        """Yield the files. Raises GitRefused, ParserLost."""
        child = ChildProcess(
            [sys.executable, "-s", "-W", "ignore", *COMMAND, json.dumps(asdict(UNPACK_LIMITS))]
        )
        try:
            yield from self._files(child, time.monotonic() + UNPACK_LIMITS.wall_seconds)
        except TimeoutError:
            raise GitRefused(TOO_MUCH) from None
        except ChildEnded:
            raise _refusal(verdict(child)) from None
        finally:
            child.end()

    def _files(self, child: ChildProcess, ends_at: float) -> Iterator[RepositoryFile]:
        request = asdict(self._wanted) | {"commit": self._fetched.commit}
        pieces = _pieces(self._fetched.pack)
        child.send(request, pieces, body_bytes=self._fetched.pack_bytes, ends_at=ends_at)
        while True:
            header, data = child.receive(ends_at=ends_at)
            if "refused" in header:
                raise GitRefused(header["refused"])
            if "skipped" in header:
                self.skipped, self.commit = header["skipped"], header["commit"]
                return
            yield RepositoryFile(header["path"], None if header["is_same"] else data)


def _pieces(pack: BinaryIO) -> Iterator[bytes]:
    while piece := pack.read(_PIECE_BYTES):
        yield piece


def _refusal(ended: Exception) -> Exception:
    """Translate the end of the child into words for repositories."""
    if not isinstance(ended, Unreadable):
        return ended
    return GitRefused(TOO_MUCH if str(ended) in (TOO_BIG, TOO_SLOW) else DAMAGED)
