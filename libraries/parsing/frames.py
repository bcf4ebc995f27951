"""Write and read the frames in which parent and child talk: a JSON header and bytes."""

import io
import json
import struct
from collections.abc import Iterator
from typing import IO, Any, BinaryIO, Final

_LENGTHS: Final = struct.Struct(">IQ")
PREFIX_BYTES: Final = _LENGTHS.size
PIECE_BYTES: Final = 1_048_576


class Body:
    """The bytes that a frame sends: in memory, or an open file that is read in pieces."""

    def __init__(self, content: bytes | IO[bytes]) -> None:
        self._stream: IO[bytes] = io.BytesIO(content) if isinstance(content, bytes) else content
        self._stream.seek(0, io.SEEK_END)
        self.size = self._stream.tell()

    def pieces(self) -> Iterator[bytes]:
        self._stream.seek(0)
        while piece := self._stream.read(PIECE_BYTES):
            yield piece


def frame_head(header: dict[str, Any], body_bytes: int) -> bytes:
    """Return what goes in front of a body of so many bytes."""
    encoded = json.dumps(header).encode()
    return _LENGTHS.pack(len(encoded), body_bytes) + encoded


def frame(header: dict[str, Any], body: bytes) -> tuple[bytes, bytes]:
    """Return head and body, to be written one after the other: the body is not copied."""
    return frame_head(header, len(body)), body


def lengths(prefix: bytes) -> tuple[int, int]:
    """Return the lengths of header and body, in bytes."""
    header, body = _LENGTHS.unpack(prefix)
    return header, body


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """Read the next frame, blocking; None when the stream has ended."""
    prefix = stream.read(PREFIX_BYTES)
    if len(prefix) < PREFIX_BYTES:
        return None
    header_bytes, body_bytes = lengths(prefix)
    return json.loads(stream.read(header_bytes)), stream.read(body_bytes)
