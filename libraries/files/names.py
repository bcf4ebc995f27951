"""Clean the names of files for people. They never touch a path: storage names are random."""

from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

MAX_NAME_CHARS: Final = 255
NAMELESS: Final = "file"
# What is longer is no suffix but a sentence with a full stop.
_MAX_SUFFIX_CHARS: Final = 20


def clean_name(given: str) -> str:
    """Return the last part of a path, on one line, printable, at most MAX_NAME_CHARS.

    Keeps the suffix of a name it must cut. Never empty.
    """
    last = given.replace("\\", "/").rstrip("/").rpartition("/")[2]
    shown = "".join(char for char in last if char.isprintable() or char.isspace())
    name = " ".join(shown.split())
    if not name.strip("."):
        return NAMELESS
    if len(name) <= MAX_NAME_CHARS:
        return name
    suffix = PurePosixPath(name).suffix
    suffix = suffix if len(suffix) <= _MAX_SUFFIX_CHARS else ""
    return name[: MAX_NAME_CHARS - len(suffix)] + suffix


def name_of_url(url: str) -> str:
    """Name a file after its URL's last part, or after the host where that is empty.

    `url` is one that was fetched.
    """
    parts = urlsplit(url)
    last = unquote(parts.path.rpartition("/")[2])
    return clean_name(last or parts.hostname or NAMELESS)
