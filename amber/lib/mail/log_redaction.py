"""Keep the keys of mailed links out of the log.

Whoever has a link to reset a password, or to prove an address, is as good as its owner. Such links
lead to the pages of a front end. If one asks Amber for them by mistake, Amber's request log and
Django's log of refusals would hold the path.
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
    """Replace each key in the event's strings; a processor for structlog."""
    for name, value in event.items():
        if isinstance(value, str) and "/" in value:
            event[name] = _KEYS.sub(r"/\1/…", value)
    return event
