"""Hold the installation's logo: a file's, an address's, or Amber's own in the installation's colour.

Pages load pictures from their own origin alone, so a logo that lies elsewhere is fetched here, again after
an hour. While it cannot be fetched, Amber's own is shown.
"""

import time
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final

import structlog
from django.conf import settings

from amber.lib.egress import FetchError, FetchLimits, UnsafeAddress, fetch_sync
from amber.lib.egress.operator_hosts import policy_trusting
from amber.lib.environment import MAX_LOGO_BYTES, picture_type

logger = structlog.get_logger(__name__)

_KEEP_SECONDS: Final = 3_600
_RETRY_SECONDS: Final = 60
_OWN_SHADES: Final = {"#f4b94a": "400", "#b4540a": "600", "#5a2a05": "900"}
"""The shades of the palette that stand for the colours of Amber's own logo."""


@dataclass(frozen=True)
class Logo:
    content: bytes
    mime_type: str


@dataclass
class _FetchedLogo:
    logo: Logo | None = None
    until: float = 0.0


_fetched = _FetchedLogo()
_lock = Lock()


def logo() -> Logo:
    """Return the logo; of an address once an hour, which then costs one request its time.

    Others get what is known meanwhile: anybody may ask, and a server that hangs must not stop all threads.
    """
    if not settings.AMBER_LOGO:
        return _own_logo()
    if not settings.AMBER_LOGO.startswith("https://"):
        return _logo_of(Path(settings.AMBER_LOGO).read_bytes())
    if time.monotonic() >= _fetched.until and _lock.acquire(blocking=False):
        try:
            _fetch_again()
        finally:
            _lock.release()
    return _fetched.logo or _own_logo()


def version() -> str:
    """Return what addresses of the logo end with, so that browsers ask again when the setting changed."""
    return sha256(f"{settings.AMBER_LOGO} {settings.AMBER_COLOR}".encode()).hexdigest()[:8]


def _fetch_again() -> None:
    """Fetch the logo; keep the one before for a while if that fails."""
    url = settings.AMBER_LOGO
    limits = FetchLimits(connect_seconds=3, total_seconds=5, max_bytes=MAX_LOGO_BYTES)
    try:
        answer = fetch_sync("GET", url, policy=policy_trusting(url), limits=limits)
        _fetched.logo = _logo_of(answer.body if answer.is_success else b"")
        _fetched.until = time.monotonic() + _KEEP_SECONDS
    except (FetchError, UnsafeAddress, ValueError) as fault:
        logger.warning("logo_not_fetched", url=url, reason=str(fault))
        _fetched.until = time.monotonic() + _RETRY_SECONDS


def _logo_of(content: bytes) -> Logo:
    """Raises ValueError for what is no picture."""
    return Logo(content, picture_type(content))


@cache
def _own_logo() -> Logo:
    text = (settings.BASE_DIR / "web" / "styles" / "icon.svg").read_text()
    if settings.AMBER_COLOR:
        for colour, shade in _OWN_SHADES.items():
            text = text.replace(colour, settings.AMBER_PALETTE[shade])
    return Logo(text.encode(), "image/svg+xml")
