"""Unpack a Git pack in a child process: `python -m libraries.git.pack_child`, started by `packs`.

Reads one request (the pack, and which files are wanted) and writes a frame for each file, then one
with what was left out. Nothing is written to a disk; links and submodules are not followed, since
there is nothing they could lead to. Runs under the limits of `parsing.confinement`.
"""

import hashlib
import io
import json
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

from libraries.git.globs import selector
from libraries.git.readable import SkipReason, is_safe_path, reason_to_skip
from libraries.parsing.confinement import ParserLimits, allow_one_document, confine
from libraries.parsing.frames import frame, read_frame

MAX_FILES: Final = 20_000
MAX_DEPTH: Final = 100
MAX_UNPACKED_BYTES: Final = 400_000_000

DAMAGED: Final = "The repository's server sent a damaged pack."
TOO_LARGE: Final = f"One commit of the repository is over {MAX_UNPACKED_BYTES:,} bytes unpacked."
TOO_MANY: Final = (
    f"The repository has more than {MAX_FILES:,} files. Name the wanted ones with `include`."
)


class _PackRefusal(Exception):
    pass


class _Tree:
    """The objects of a pack, by name."""

    def __init__(self, pack: bytes) -> None:
        from dulwich.object_format import SHA1
        from dulwich.objects import Blob, Commit, Tag, Tree
        from dulwich.pack import PackData, PackInflater

        self._trees: dict[bytes, list[Any]] = {}
        self._blobs: dict[bytes, Any] = {}
        self._commits: dict[bytes, bytes] = {}
        unpacked_bytes = 0
        data = PackData("pack", object_format=SHA1, file=io.BytesIO(pack), size=len(pack))
        for each in PackInflater.for_pack_data(data):
            unpacked_bytes += each.raw_length()
            if unpacked_bytes > MAX_UNPACKED_BYTES:
                raise _PackRefusal(TOO_LARGE)
            if isinstance(each, Tree):
                self._trees[each.id] = list(each.iteritems())
            elif isinstance(each, Blob):
                self._blobs[each.id] = each
            elif isinstance(each, Commit):
                self._commits[each.id] = each.tree
            elif isinstance(each, Tag):
                self._commits[each.id] = each.object[1]  # one more step on the way to a tree

    def commit_and_root(self, name: str) -> tuple[str, bytes]:
        """Return the commit that this name or tag leads to, and its tree. Raises _PackRefusal."""
        found = name.encode()
        for _ in range(MAX_DEPTH):
            leads_to = self._commits.get(found, b"")
            if leads_to in self._trees:
                return found.decode(), leads_to
            found = leads_to
        raise _PackRefusal(DAMAGED)

    def walk(self, tree: bytes, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
        """Yield paths and their entries, in Git's order. Raises _PackRefusal."""
        if depth > MAX_DEPTH or tree not in self._trees:
            raise _PackRefusal(DAMAGED)
        for entry in self._trees[tree]:
            path = prefix + entry.path.decode("utf-8", "backslashreplace")
            if stat.S_ISDIR(entry.mode):
                yield from self.walk(entry.sha, f"{path}/", depth + 1)
            else:
                yield path, entry

    def content(self, sha: bytes) -> bytes | None:
        """Return a file's bytes; None for what the server left out for its size."""
        blob = self._blobs.get(sha)
        return None if blob is None else b"".join(blob.chunked)


class _PackUnpacker:
    """Reads the wanted files. `skipped` counts those that are no documents, by reason."""

    def __init__(self, tree: _Tree, request: dict[str, Any]) -> None:
        self._tree = tree
        self.commit, self._root = tree.commit_and_root(request["commit"])
        self._known: dict[str, str] = request["known"]
        self._max_file_bytes: int = request["max_file_bytes"]
        self._is_meant: Callable[[str], bool] = selector(request["include"], request["exclude"])
        self.skipped: Counter[str] = Counter()

    def files(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Yield headers and contents; unchanged files come without content. Raises _PackRefusal."""
        count = 0
        for path, entry in self._tree.walk(self._root):
            if not self._is_meant(path):
                continue
            data = self._read_wanted(path, entry)
            if data is None:
                continue
            count += 1
            if count > MAX_FILES:
                raise _PackRefusal(TOO_MANY)
            is_same = self._known.get(path) == hashlib.sha256(data).hexdigest()
            yield {"path": path, "is_same": is_same}, b"" if is_same else data

    def _read_wanted(self, path: str, entry: Any) -> bytes | None:
        """Return a document's bytes; None for any other file, which is counted."""
        reason, data = self._inspect(path, entry)
        if reason is not None:
            self.skipped[reason.value] += 1
        return data if reason is None else None

    def _inspect(self, path: str, entry: Any) -> tuple[SkipReason | None, bytes]:
        if not is_safe_path(path):
            return SkipReason.UNSAFE_PATH, b""
        if stat.S_ISLNK(entry.mode):
            return SkipReason.LINK, b""
        if not stat.S_ISREG(entry.mode):
            return SkipReason.SUBMODULE, b""
        data = self._tree.content(entry.sha)
        if data is None or len(data) > self._max_file_bytes:
            return SkipReason.TOO_LARGE, b""
        return reason_to_skip(path, data), data


def main() -> None:
    limits = ParserLimits(**json.loads(sys.argv[1]))
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import dulwich.pack  # noqa: F401  (before the limits: it looks for C extensions)

    confine(limits)
    allow_one_document(limits)
    request = read_frame(os.fdopen(0, "rb"))
    if request is not None:
        _answer(replies, *request)


def _answer(replies: BinaryIO, request: dict[str, Any], pack: bytes) -> None:
    try:
        reader = _PackUnpacker(_Tree(pack), request)
        for header, data in reader.files():
            replies.writelines(frame(header, data))
        last: dict[str, Any] = {"skipped": dict(reader.skipped), "commit": reader.commit}
    except _PackRefusal as refusal:
        last = {"refused": str(refusal)}
    replies.writelines(frame(last, b""))
    replies.flush()


if __name__ == "__main__":
    main()
