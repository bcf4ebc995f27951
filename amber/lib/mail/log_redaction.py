"""Keeps the keys of mailed links out of the log.

Whoever has a link to reset a password, or to prove an address, is as good as its owner. Such links lead to
the pages of a front end; one that asks Amber for them by mistake would have its path logged, by our request
log and by Django's of refusals.
"""

import re
from collections.abc import MutableMapping
from typing import Any, Final

LINK_PATHS: Final = ("verify-email", "reset-password")
"""The first part of the paths of mailed links; what follows is the key."""

_KEYS: Final = re.compile(rf"/({'|'.join(LINK_PATHS)})/[^\s\"'<>]+")


def hide_link_keys(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A processor for structlog: replaces each key in the event's strings."""
    for name, value in event.items():
        if isinstance(value, str) and "/" in value:
            event[name] = _KEYS.sub(r"/\1/…", value)
    return event
