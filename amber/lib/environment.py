"""Read settings from the environment; a wrong value fails at start-up and says what is needed."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from amber.lib.secrets import check_keys

T = TypeVar("T")

MAIL_SECONDS = 20
"""How long each step of talking to the mail server may take: some look up who calls before they answer."""


def _read(
    name: str, default: T, parse: Callable[[str], T], wanted: str, *, secret: bool = False
) -> T:
    """Parse the variable; a wrong value is shown, unless it may hold a password."""
    raw = os.environ.get(name, "")
    if raw == "":
        return default
    try:
        return parse(raw)
    except ValueError:
        shown = name if secret else f"{name}={raw!r}:"
        raise ImproperlyConfigured(f"{shown} {wanted}") from None


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "") or default


def number(name: str, default: float, *, least: float = 0) -> float:
    return _read(name, default, _at_least(float, least), f"must be a number of at least {least}")


def integer(name: str, default: int, *, least: int = 0) -> int:
    return _read(
        name, default, _at_least(int, least), f"must be a whole number of at least {least}"
    )


def numeral(name: str, default: str) -> str:
    """Return a number as it is written, for services that are sent it as text."""
    return _read(name, default, _parse_numeral, "must be a number")


def flag(name: str, default: bool) -> bool:
    return _read(name, default, _parse_flag, "must be one of 1, 0, true, false, yes, no")


def words(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a list that is separated by commas."""
    return _read(
        name, default, lambda raw: tuple(w.strip() for w in raw.split(",") if w.strip()), ""
    )


def choice(name: str, default: str, among: tuple[str, ...]) -> str:
    def parse(raw: str) -> str:
        if raw not in among:
            raise ValueError(raw)
        return raw

    return _read(name, default, parse, f"must be one of {', '.join(among)}")


def address(name: str, default: str = "") -> str:
    """Return the URL of an operator's own service; empty if there is none."""
    wanted = "must be an address like https://host:8080/path, without user, ? or #"
    return _read(name, default, _parse_address, wanted)


def origins(name: str) -> list[str]:
    """Return addresses of pages, separated by commas: scheme and host, no path."""

    def parse(raw: str) -> list[str]:
        found = [word.strip() for word in raw.split(",") if word.strip()]
        for each in found:
            parts = urlsplit(each)
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.path:
                raise ValueError(each)
        return found

    return _read(name, [], parse, "must be addresses like https://app.example.com")


def redis(name: str, default: str) -> str:
    """Return the address of a Redis."""

    def parse(raw: str) -> str:
        parts = urlsplit(raw)
        if parts.scheme not in ("redis", "rediss", "unix") or parts.port == 0:
            raise ValueError(raw)
        return raw

    return _read(
        name, default, parse, "must have the form redis://:password@host:6379/0", secret=True
    )


def mail_server(name: str) -> dict[str, object]:
    """Return EMAIL_* settings from smtp://user:password@host:port (smtps: TLS from the start).

    `?tls=none` does without TLS, for a server on the same machine or network.
    """
    raw = os.environ.get(name, "")
    if not raw:
        return {"EMAIL_BACKEND": "amber.lib.mail.unsent_mail.UnsentEmailBackend"}
    parts = urlsplit(raw)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or not _has_port(parts):
        raise ImproperlyConfigured(f"{name} must have the form smtp://user:password@host:587")
    implicit, is_plain = parts.scheme == "smtps", parts.query == "tls=none"
    if (parts.query and not is_plain) or (is_plain and implicit):
        raise ImproperlyConfigured(f"{name} may end in ?tls=none where it begins with smtp://")
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or (465 if implicit else 587),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": implicit,
        "EMAIL_USE_TLS": not implicit and not is_plain,
        "EMAIL_TIMEOUT": MAIL_SECONDS,
    }


def secret_keys(name: str) -> tuple[str, ...]:
    """Return the key ring; checked, never shown."""
    keys = words(name)
    try:
        check_keys(keys)
    except ValueError as exc:
        raise ImproperlyConfigured(str(exc)) from None
    return keys


def folder(name: str, default: Path) -> Path:
    return Path(os.environ.get(name, "") or default).absolute()


# libpq's options: a host that vanished silently is noticed in 15 s. By default a connection attempt
# takes two minutes to fail, and a query on a half-open connection waits for hours.
_NOTICE_LOSS = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
}


def database(name: str, otherwise: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return connection settings from postgresql://user:password@host:port/name?host=/socket."""
    raw = os.environ.get(name, "")
    if otherwise is not None and not raw:
        return otherwise
    parts = urlsplit(raw)
    is_postgres = parts.scheme in ("postgres", "postgresql") and _has_port(parts)
    if not is_postgres or not parts.path.strip("/"):
        raise ImproperlyConfigured(
            f"{name} must have the form postgresql://user:password@host:port/name; "
            "`make run` starts a database and sets it."
        )
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "amber.lib.postgres",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", "") or parts.hostname or "",
        "PORT": str(parts.port or options.pop("port", "") or ""),
        "OPTIONS": {**_NOTICE_LOSS, **options},
    }


def _has_port(parts: SplitResult) -> bool:
    """Return whether the address names no port, or one that there can be."""
    try:
        return parts.port != 0
    except ValueError:
        return False


def _at_least(kind: Callable[[str], T], least: float) -> Callable[[str], T]:
    def parse(raw: str) -> T:
        value = kind(raw)
        if not value >= least:  # type: ignore[operator]
            raise ValueError(raw)
        return value

    return parse


def _parse_numeral(raw: str) -> str:
    if not math.isfinite(float(raw)):
        raise ValueError(raw)
    return raw.strip()


def _parse_address(raw: str) -> str:
    parts = urlsplit(raw.strip())
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc or " " in raw.strip())
    # Reading the port raises ValueError for what is no number.
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(raw)
    if not is_plain:
        raise ValueError(raw)
    return raw.strip()


def _parse_flag(raw: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if raw.lower() not in known:
        raise ValueError(raw)
    return known[raw.lower()]
