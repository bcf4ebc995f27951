"""Decide what a file is from its bytes, never from what its sender calls it.

There are four kinds: images (re-encoded, shown in pages), texts (kept as sent, and decoded for
models), sound, and everything else (`application/octet-stream`). HTML and SVG are texts: no page of
Amber's renders them. The decoders of images are imported with the first file.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from django.conf import settings

from amber.lib.errors import Invalid, TooLarge
from libraries.files.audio import audio_kind
from libraries.files.payload import Payload
from libraries.files.text import read_text

BINARY_TYPE: Final = "application/octet-stream"
TEXT_TYPE: Final = "text/plain"
HEAD_BYTES: Final = 4_096
"""Enough to recognise each kind that is told by its first bytes."""
# Of texts the name may choose among types that no browser runs.
TEXT_TYPES: Final = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".csv": "text/csv",
    ".json": "application/json",
}


@dataclass(frozen=True, slots=True)
class Content:
    """A file's content as it is stored. `text` is None for what is not a text."""

    data: bytes | Payload
    mime_type: str
    text: str | None = None


def read_content(name: str, data: bytes | Payload) -> Content:
    """Recognise a file and prepare its bytes for the storage.

    Raises TooLarge, Invalid (empty), UnusableImage. Cost: for images up to a second of CPU.
    """
    payload = Payload.of(data)
    if payload.size > settings.AMBER_MAX_UPLOAD_BYTES:
        raise TooLarge(f"A file may have at most {settings.AMBER_MAX_UPLOAD_BYTES:,} bytes.")
    if not payload.size:
        raise Invalid("The file is empty.")
    from libraries.files.images import MIME_TYPES, detect_format, reencode

    head = payload.head(HEAD_BYTES)
    image_format = detect_format(head)
    if image_format is not None:
        return Content(reencode(payload.read(), image_format), MIME_TYPES[image_format])
    text = read_text(payload)
    if text is None:
        _, audio_type = audio_kind(head) or ("", BINARY_TYPE)
        return Content(payload, audio_type)
    suffix = PurePosixPath(name).suffix.lower()
    return Content(payload, TEXT_TYPES.get(suffix, TEXT_TYPE), text)
