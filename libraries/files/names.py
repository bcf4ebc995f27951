"""Names of files as people see them. They never touch a path: storage names are random."""

from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

MAX_NAME_CHARS: Final = 255
NAMELESS: Final = "file"
# Longer endings are no endings, but sentences with a point.
_MAX_SUFFIX_CHARS: Final = 20


def clean_name(given: str) -> str:
    """The last part of a path of any system, on one line, printable, at most MAX_NAME_CHARS.

    Keeps the ending of a name it must cut. Never empty.
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
    """Of the URL's last part; of its host, where that is empty. `url` is one that was fetched."""
    parts = urlsplit(url)
    last = unquote(parts.path.rpartition("/")[2])
    return clean_name(last or parts.hostname or NAMELESS)
