"""Check a zip before any parser opens it: its sizes, its passwords, its document types.

Refuses members over 200 MB or packed more than a hundredfold, and XML with a document type: Office
Open XML has none (ECMA-376 part 2, 6.2.5), and entities are declared nowhere else.
"""

import io
import zipfile
import zlib
from typing import Any, Final
from xml.parsers import expat

from libraries.parsing.result import Unreadable

MAX_MEMBER_BYTES: Final = 200_000_000
MAX_TOTAL_BYTES: Final = 500_000_000
MAX_MEMBERS: Final = 20_000
MAX_RATIO: Final = 100
_RATIO_FROM_BYTES: Final = 1_000_000
"""Smaller members do no harm; a page of nothing but styles is easily packed a hundredfold."""

DAMAGED: Final = "The file is damaged or incomplete: its parts cannot be unpacked."
LOCKED: Final = "The file is protected by a password. Save it without one."
BOMB: Final = "The file unpacks to far more than its size and is not opened."
ENTITIES: Final = (
    "The file declares XML entities, which Office files do not have. It is not opened."
)
_READ_BYTES: Final = 65_536


def check_parts(content: bytes) -> frozenset[str]:
    """Check the package and return the names of its parts. Raises Unreadable."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            members = package.infolist()
            _refuse_bombs(members)
            for member in members:
                if member.filename.endswith((".xml", ".rels")):
                    _refuse_document_type(package, member)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError):
        raise Unreadable(DAMAGED) from None
    return frozenset(member.filename for member in members)


def _refuse_bombs(members: list[zipfile.ZipInfo]) -> None:
    if any(member.flag_bits & 1 for member in members):
        raise Unreadable(LOCKED)
    if len(members) > MAX_MEMBERS or sum(each.file_size for each in members) > MAX_TOTAL_BYTES:
        raise Unreadable(BOMB)
    for member in members:
        is_dense = member.file_size > MAX_RATIO * max(member.compress_size, 1)
        if member.file_size > MAX_MEMBER_BYTES or (
            is_dense and member.file_size > _RATIO_FROM_BYTES
        ):
            raise Unreadable(BOMB)


class _RootReached(Exception):
    """The parser has reached the first element, before which a document type would stand."""


def _refuse_document_type(package: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Read up to the first element. Broken XML is left to the real parser."""
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _on_document_type
    parser.StartElementHandler = _on_element
    with package.open(member) as part:
        while piece := part.read(_READ_BYTES):
            try:
                parser.Parse(piece, False)
            except (_RootReached, expat.ExpatError):
                return


def _on_document_type(*_: Any) -> None:
    raise Unreadable(ENTITIES)


def _on_element(*_: Any) -> None:
    raise _RootReached
