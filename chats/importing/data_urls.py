"""Read files that stand in a text as `data:` URLs, or in base64 alone.

Format: RFC 2397. What is damaged is a file without bytes, which nothing is made of.
"""

import base64
import binascii
from urllib.parse import unquote_to_bytes

from chats.importing.converted import SentFile


def file_of_data_url(url: str, *, name: str = "") -> SentFile:
    """Return the file, named after its type if it has no name."""
    head, _, body = url.removeprefix("data:").partition(",")
    mime_type, *rest = head.split(";")
    if "base64" not in rest:
        return SentFile(name or _name_of(mime_type), data=unquote_to_bytes(body))
    return file_of_base64(body, name=name or _name_of(mime_type))


def file_of_base64(text: str, *, name: str) -> SentFile:
    try:
        return SentFile(name, data=base64.b64decode(text, validate=False) or None)
    except (binascii.Error, ValueError):
        return SentFile(name)


def _name_of(mime_type: str) -> str:
    kind, _, suffix = mime_type.partition("/")
    return f"{kind or 'file'}.{suffix[:20] or 'bin'}"
