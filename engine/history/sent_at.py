"""Write and strip the line `[Sent at …]`, which tells a model when a message was written.

It is written in front of stored messages, and taken off the start of an answer when the model
imitates what it has read. It is never stored and never shown.
"""

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from engine.text.dates import in_zone

_MARK = "[Sent at "
_MAX_STAMP_CHARS = 40
_MAX_HELD_CHARS = 200
_STAMP = rf"\d[\d\-:./ ,TZ+]{{0,{_MAX_STAMP_CHARS - 1}}}"
_PREFIX = re.compile(rf"\s*\[Sent at {_STAMP}\][ \t]*[\r\n]*")
_UNFINISHED_STAMP = re.compile(_STAMP)


@lru_cache(maxsize=1024)
def time_zone(name: str) -> tzinfo:
    """Return the IANA zone of that name, or UTC: a wrong zone must not end a turn."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC


def stamp(at: datetime, zone: tzinfo) -> str:
    """Format `at` (aware) as YYYY-MM-DD HH:MM:SS on the clock of `zone`."""
    return in_zone(at, zone).isoformat(" ", "seconds")[:19]


def sent_at(at: datetime | None, zone: tzinfo) -> str:
    """Return the prefix of a message written `at`, with its newline; empty if that is unknown."""
    return "" if at is None else f"{_MARK}{stamp(at, zone)}]\n"


class SentAtStripper:
    """Takes the prefix off the start of one streamed answer.

    Text is held back only while it could still become the prefix, so an ordinary answer loses
    no time. White space before the prefix goes with it, an indented first line stays indented,
    and a prefix written twice goes twice.
    """

    def __init__(self) -> None:
        self._held = ""
        self._is_done = False

    def feed(self, text: str) -> str:
        """Return the part of the answer that may be shown now."""
        if self._is_done:
            return text
        self._held += text
        while (match := _PREFIX.match(self._held)) and match.end() < len(self._held):
            self._held = self._held[match.end() :]
        if match or _may_become_prefix(self._held):
            return ""
        return self._release()

    def flush(self) -> str:
        """Return what was still held back when the answer ended."""
        if _PREFIX.fullmatch(self._held):
            self._held = ""
        return self._release()

    def _release(self) -> str:
        text, self._held, self._is_done = self._held, "", True
        return text


def _may_become_prefix(text: str) -> bool:
    if len(text) > _MAX_HELD_CHARS:
        return False
    text = text.lstrip()
    if len(text) <= len(_MARK):
        return _MARK.startswith(text)
    return text.startswith(_MARK) and bool(_UNFINISHED_STAMP.fullmatch(text, len(_MARK)))
