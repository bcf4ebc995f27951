"""Decide which files of a tree can be documents, and why others are left out."""

from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final

from libraries.parsing.kinds import binary_kind, is_zip
from libraries.parsing.result import Unreadable

MAX_PATH_CHARS: Final = 1_000
_OFFICE: Final = frozenset({".docx", ".pptx", ".xlsx"})
_LOOKED_AT_BYTES: Final = 8_000
"""As much as Git searches for a NUL, which tells a binary file."""
_WIDE_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


class SkipReason(StrEnum):
    """Why a file of a tree becomes no document."""

    BINARY = "binary"
    EMPTY = "empty"
    LINK = "link"
    SUBMODULE = "submodule"
    TOO_LARGE = "too_large"
    UNSAFE_PATH = "unsafe_path"


def reason_to_skip(path: str, data: bytes) -> SkipReason | None:
    """Return why a file is no document; None for text of any kind, PDFs and Office files."""
    if not data.strip():
        return SkipReason.EMPTY
    if is_zip(data):
        return None if PurePosixPath(path).suffix.lower() in _OFFICE else SkipReason.BINARY
    try:
        if binary_kind(data) is not None:
            return None
    except Unreadable:
        return SkipReason.BINARY
    if data.startswith(_WIDE_MARKS):
        return None
    return SkipReason.BINARY if b"\0" in data[:_LOOKED_AT_BYTES] else None


def is_safe_path(path: str) -> bool:
    """Return whether a path is relative, of plain parts, and short enough to be stored.

    No such path leads out of a tree.
    """
    parts = path.split("/")
    return (
        len(path) <= MAX_PATH_CHARS
        and path.isprintable()
        and not any(part in ("", ".", "..") or "\\" in part for part in parts)
        and parts[0].lower() != ".git"
    )
