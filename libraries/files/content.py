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
from libraries.files.text import capped_text, decode_file

BINARY_TYPE: Final = "application/octet-stream"
TEXT_TYPE: Final = "text/plain"
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

    data: bytes
    mime_type: str
    text: str | None = None


def read_content(name: str, data: bytes) -> Content:
    """Recognise a file and prepare its bytes for the storage.

    Raises TooLarge, Invalid (empty), UnusableImage. Cost: for images up to a second of CPU.
    """
    if len(data) > settings.AMBER_MAX_UPLOAD_BYTES:
        raise TooLarge(f"A file may have at most {settings.AMBER_MAX_UPLOAD_BYTES:,} bytes.")
    if not data:
        raise Invalid("The file is empty.")
    from libraries.files.images import MIME_TYPES, detect_format, reencode

    image_format = detect_format(data)
    if image_format is not None:
        return Content(reencode(data, image_format), MIME_TYPES[image_format])
    text = decode_file(data)
    if text is None:
        _, audio_type = audio_kind(data) or ("", BINARY_TYPE)
        return Content(data, audio_type)
    suffix = PurePosixPath(name).suffix.lower()
    return Content(data, TEXT_TYPES.get(suffix, TEXT_TYPE), capped_text(text))
