"""Read the files of a folder, or of one commit of a local repository, for operators alone.

Nothing a tenant says reaches this. Links are not followed, `.git` is not read.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from libraries.git.fetching import CommitChoice, FetchedPack, GitRefused, NothingHere
from libraries.git.globs import selector
from libraries.git.packs import PathFilter, RepositoryFile
from libraries.git.readable import SkipReason, is_safe_path, reason_to_skip


class FolderReader:
    """Iterates over the wanted files by path; afterwards `skipped` counts the others by reason."""

    def __init__(self, folder: Path, wanted: PathFilter) -> None:
        self._folder = folder
        self._is_meant = selector(wanted.include, wanted.exclude)
        self._max_file_bytes = wanted.max_file_bytes
        self.skipped: dict[str, int] = {}

    def __iter__(self) -> Iterator[RepositoryFile]:
        for path in self._paths():
            name = path.relative_to(self._folder).as_posix()
            if not self._is_meant(name):
                continue
            reason, data = self._inspect(path, name)
            if reason is None:
                yield RepositoryFile(name, data)
            else:
                self.skipped[reason.value] = self.skipped.get(reason.value, 0) + 1

    def _paths(self) -> Iterator[Path]:
        for parent, folders, files in os.walk(self._folder):
            folders[:] = sorted(each for each in folders if each != ".git")
            for name in sorted(files):
                yield Path(parent, name)

    def _inspect(self, path: Path, name: str) -> tuple[SkipReason | None, bytes]:
        if not is_safe_path(name):
            return SkipReason.UNSAFE_PATH, b""
        if path.is_symlink() or not path.is_file():
            return SkipReason.LINK, b""
        if path.stat().st_size > self._max_file_bytes:
            return SkipReason.TOO_LARGE, b""
        data = path.read_bytes()
        return reason_to_skip(name, data), data


def pack_local_commit(folder: Path, *, ref: str, into: BinaryIO) -> FetchedPack:
    """Pack one commit of the repository in this folder, as if it was fetched. Raises GitRefused."""
    from dulwich.client import LocalGitClient
    from dulwich.errors import NotGitRepository

    choice = CommitChoice(ref)
    try:
        LocalGitClient().fetch_pack(
            str(folder), choice, cast(Any, NothingHere()), into.write, depth=1
        )
    except NotGitRepository:
        raise GitRefused(f"There is no Git repository in {folder}.") from None
    size = into.tell()
    into.seek(0)
    return FetchedPack(choice.commit, into, size)
