"""Read settings from the environment; a wrong value fails at start-up and says what is needed."""

import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from amber.lib.palette import is_colour
from amber.lib.redis_address import check_address
from amber.lib.secrets import check_keys

T = TypeVar("T")
N = TypeVar("N", int, float)

MAIL_SECONDS = 20
"""How long each step with the mail server may take: some servers look up the client before they answer."""
MAX_LOGO_BYTES: Final = 1_000_000
"""A logo is sent with every first page."""
PICTURES: Final = "an SVG, PNG, JPEG or WebP picture"
_HOST: Final = re.compile(r"\*|\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\]")
"""As ALLOWED_HOSTS takes them: a name, one that begins with a dot for all below it, `*`, or an address."""
LONGEST: Final = {"_SECONDS": 3_153_600_000, "_HOURS": 876_000, "_DAYS": 36_500, "_MONTHS": 1_200}
"""By a setting's unit: a hundred years. Of more there are no dates to count with."""


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


def line(name: str, default: str, *, most_chars: int) -> str:
    """Return a short text of one line."""

    def parse(raw: str) -> str:
        if not raw.strip() or not raw.isprintable() or len(raw) > most_chars:
            raise ValueError(raw)
        return raw.strip()

    return _read(name, default, parse, f"must be one line of at most {most_chars} characters")


def number(name: str, default: float, *, least: float = 0) -> float:
    return _read_number(name, default, float, least, "a number")


def integer(name: str, default: int, *, least: int = 0) -> int:
    return _read_number(name, default, int, least, "a whole number")


def numeral(name: str, default: str) -> str:
    """Return a number as it is written, for services that are sent it as text."""
    return _read(name, default, _parse_numeral, "must be a number")


def flag(name: str, default: bool) -> bool:
    return _read(name, default, _parse_flag, "must be one of 1, 0, true, false, yes, no")


def words(
    name: str, default: tuple[str, ...] = (), *, among: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return a list that is separated by commas; `among` are the allowed words, if not all are."""

    def parse(raw: str) -> tuple[str, ...]:
        found = tuple(w.strip() for w in raw.split(",") if w.strip())
        if among and not {*found} <= {*among}:
            raise ValueError(raw)
        return found

    return _read(name, default, parse, f"must be some of {', '.join(among)}")


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


def colour(name: str) -> str:
    """Return a colour as #rgb or #rrggbb; empty if there is none."""

    def parse(raw: str) -> str:
        if not is_colour(raw.strip()):
            raise ValueError(raw)
        return raw.strip()

    return _read(name, "", parse, "must be a colour like #0b6e4f")


def logo(name: str) -> str:
    """Return the https address of a picture, or the path of one that can be read; empty if none."""
    wanted = (
        f"must be an https address, or the path of {PICTURES} of at most {MAX_LOGO_BYTES:,} bytes"
    )
    return _read(name, "", _parse_logo, wanted)


def picture_type(content: bytes) -> str:
    """Return the MIME type of a picture by its first bytes. Raises ValueError for anything else."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    for begin, mime_type in {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg"}.items():
        if content.startswith(begin):
            return mime_type
    if b"<svg" in content[:2_000] and b"\0" not in content:
        return "image/svg+xml"
    raise ValueError(f"It is not {PICTURES}.")


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


def hosts(name: str, default: tuple[str, ...]) -> list[str]:
    """Return names of hosts, separated by commas: neither scheme, port nor path."""

    def parse(raw: str) -> tuple[str, ...]:
        found = tuple(word.strip().lower() for word in raw.split(",") if word.strip())
        if not all(_HOST.fullmatch(each) for each in found):
            raise ValueError(raw)
        return found

    return list(
        _read(name, default, parse, "must be hosts like amber.example.com, without https://")
    )


def redis(name: str, default: str) -> str:
    """Return the address of a Redis, or of the sentinels that watch one."""
    wanted = (
        "must have the form redis://:password@host:6379/0, or "
        "redis+sentinel://:password@host:26379,host:26379,host:26379/service/0"
    )
    return _read(name, default, check_address, wanted, secret=True)


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
    if not _is_postgres(parts):
        raise ImproperlyConfigured(
            f"{name} must have the form postgresql://user:password@host:port/name; "
            "`make run` starts a database and sets it."
        )
    login = {"USER": unquote(parts.username or ""), "PASSWORD": unquote(parts.password or "")}
    return {"ENGINE": "amber.lib.postgres", **login, **_database_place(parts)}


def replica(name: str, primary: Mapping[str, Any]) -> dict[str, Any]:
    """Return connection settings of a replica, of the primary's login; empty if there is none."""
    if not os.environ.get(name):
        return {}
    given = database(name)
    login = {each: given[each] or primary[each] for each in ("USER", "PASSWORD")}
    if login["USER"] != primary["USER"]:
        raise ImproperlyConfigured(
            f"{name} must log in as DATABASE_URL does, or name no user: policies keep tenants apart there, too."
        )
    return {**given, **login}


def database_place(name: str) -> dict[str, Any]:
    """Return where another address of the same database leads, without its login; empty if it is not set.

    Each role logs in there as it does at DATABASE_URL.
    """
    raw = os.environ.get(name, "")
    if not raw:
        return {}
    parts = urlsplit(raw)
    if not _is_postgres(parts) or parts.username or parts.password:
        raise ImproperlyConfigured(
            f"{name} must have the form postgresql://host:port/name, without a user: "
            "each role logs in as it does elsewhere."
        )
    return _database_place(parts)


def _is_postgres(parts: SplitResult) -> bool:
    is_postgres = parts.scheme in ("postgres", "postgresql") and _has_port(parts)
    return is_postgres and bool(parts.path.strip("/"))


def _database_place(parts: SplitResult) -> dict[str, Any]:
    options = dict(parse_qsl(parts.query))
    return {
        "NAME": unquote(parts.path.strip("/")),
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


def _read_number(name: str, default: N, kind: Callable[[str], N], least: float, what: str) -> N:
    most = next((most for unit, most in LONGEST.items() if name.endswith(unit)), None)

    def parse(raw: str) -> N:
        value = kind(raw)
        if not least <= value < math.inf or (most is not None and value > most):
            raise ValueError(raw)
        return value

    until = "" if most is None else f" and at most {most:,}"
    return _read(name, default, parse, f"must be {what} of at least {least}{until}")


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


def _parse_logo(raw: str) -> str:
    if raw.startswith("https://"):
        return _parse_address(raw.partition("?")[0]) and raw
    path = Path(raw).absolute()
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise ValueError(raw) from fault
    if len(content) > MAX_LOGO_BYTES:
        raise ValueError(raw)
    picture_type(content)
    return str(path)


def _parse_flag(raw: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if raw.lower() not in known:
        raise ValueError(raw)
    return known[raw.lower()]
