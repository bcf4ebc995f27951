"""Carry a file's bytes on their way to the storage, without having them all in memory.

A small upload is in memory anyway; a large one lies in Django's temporary file. Either is read in pieces
of PIECE_BYTES, as often as somebody asks.
"""

import hashlib
import io
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

PIECE_BYTES: Final = 262_144
ASCII_SPACES: Final = b" \t\r\n\f\v"


class Payload:
    """`stream` can be read from any place. It is used by one thread at a time and not closed here."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    @classmethod
    def of(cls, data: "bytes | Payload") -> "Payload":
        return data if isinstance(data, Payload) else cls(io.BytesIO(data))

    @cached_property
    def size(self) -> int:
        return int(self.stream.seek(0, io.SEEK_END) or self.stream.tell())

    @cached_property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing but white space of ASCII."""
        return not any(piece.strip(ASCII_SPACES) for piece in self.pieces())

    def head(self, most_bytes: int) -> bytes:
        self.stream.seek(0)
        return bytes(self.stream.read(most_bytes))

    def pieces(self) -> Iterator[bytes]:
        self.stream.seek(0)
        while piece := self.stream.read(PIECE_BYTES):
            yield piece

    def read(self) -> bytes:
        """Return everything: for images, which are decoded as a whole."""
        return self.head(-1)
