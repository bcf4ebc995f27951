"""Write and read the frames in which parent and child talk: a JSON header and bytes."""

import json
import struct
from typing import Any, BinaryIO, Final

_LENGTHS: Final = struct.Struct(">IQ")
PREFIX_BYTES: Final = _LENGTHS.size


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
