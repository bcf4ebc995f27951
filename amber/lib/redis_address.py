"""Read the address of a Redis that sentinels watch: where they are, the service, and how to log in.

    redis+sentinel://user:password@host:26379,host:26379,host:26379/service/0

User and password are Redis' own; `?sentinel_username=` and `?sentinel_password=` are those of the
sentinels. `rediss+sentinel://` is TLS to all of them, with `ssl_ca_certs`, `ssl_certfile`, `ssl_keyfile`
and `ssl_check_hostname` as parameters. Opens nothing: `amber.lib.redis` does, and kombu for Celery.
https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

STRAIGHT_SCHEMES: Final = ("redis", "rediss", "unix")
_SCHEMES: Final = {"redis+sentinel": False, "rediss+sentinel": True}
"""Whether each is TLS."""
_SENTINEL_PORT: Final = 26_379
_TLS_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_SENTINEL_LOGIN: Final = ("sentinel_username", "sentinel_password")

SENTINEL_SECONDS: Final = 1.0
"""After so long without an answer the next sentinel is asked."""


@dataclass(frozen=True, slots=True)
class WatchedRedis:
    """The primary of a service that sentinels watch."""

    sentinels: tuple[tuple[str, int], ...]
    service: str
    db: int
    login: Mapping[str, str]
    """redis-py's `username` and `password`, where given."""
    sentinel_login: Mapping[str, str]
    tls: Mapping[str, Any]
    """redis-py's ssl_* options; empty without TLS."""


def check_address(raw: str) -> str:
    """Return an address of either kind. Raises ValueError."""
    parts = urlsplit(raw)
    if parts.scheme in _SCHEMES:
        watched_redis(raw)
    elif parts.scheme not in STRAIGHT_SCHEMES or parts.port == 0:
        raise ValueError(raw)
    return raw


def watched_redis(raw: str) -> WatchedRedis | None:
    """Return what the address of watched servers says; None for that of one server.

    Raises ValueError.
    """
    parts = urlsplit(raw)
    if parts.scheme not in _SCHEMES:
        return None
    login, _, places = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    service, _, db = parts.path.strip("/").partition("/")
    given = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    tls = _tls(given) if _SCHEMES[parts.scheme] else {}
    sentinel_login = _drop_empty(**{name[9:]: given.pop(name, "") for name in _SENTINEL_LOGIN})
    if not service or given:  # what is left is no parameter
        raise ValueError(raw)
    return WatchedRedis(
        sentinels=tuple(_place(each) for each in places.split(",")),
        service=unquote(service),
        db=int(db or 0),
        login=_drop_empty(username=unquote(user), password=unquote(password)),
        sentinel_login=sentinel_login,
        tls=tls,
    )


def sentinel_options(watched: WatchedRedis) -> dict[str, Any]:
    """Return redis-py's options of a connection to a sentinel, but for its class of `Retry`: nothing
    is repeated, since there is another sentinel."""
    return {
        **watched.sentinel_login,
        **({"ssl": True, **watched.tls} if watched.tls else {}),
        "protocol": 2,
        "driver_info": None,
        "socket_timeout": SENTINEL_SECONDS,
        "socket_connect_timeout": SENTINEL_SECONDS,
    }


def broker_url(raw: str) -> str:
    """Return Celery's address of this Redis."""
    watched = watched_redis(raw)
    if watched is None:
        return raw
    return ";".join(_broker_url(watched, *place) for place in watched.sentinels)


def broker_options(raw: str) -> dict[str, Any]:
    """Return Celery's settings that sentinels need beside their addresses."""
    watched = watched_redis(raw)
    if watched is None:
        return {}
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    retry = Retry(NoBackoff(), 0)
    sentinel_kwargs = {**sentinel_options(watched), "retry": retry}
    return {"master_name": watched.service, "sentinel_kwargs": sentinel_kwargs}


def broker_tls(raw: str) -> dict[str, Any]:
    """Return Celery's settings of TLS; without it, and where the address itself says so, empty."""
    watched = watched_redis(raw)
    return dict(watched.tls) if watched else {}


def _broker_url(watched: WatchedRedis, host: str, port: int) -> str:
    """Return kombu's address of one sentinel, with the login at Redis: it takes any of them."""
    user, password = (quote(watched.login.get(name, ""), "") for name in ("username", "password"))
    login = f"{user}:{password}@" if user or password else ""
    return f"sentinel://{login}{f'[{host}]' if ':' in host else host}:{port}/{watched.db}"


def _place(raw: str) -> tuple[str, int]:
    parts = urlsplit(f"//{raw.strip()}")
    if not parts.hostname or parts.port == 0:
        raise ValueError(raw)
    return parts.hostname, parts.port or _SENTINEL_PORT


def _tls(given: dict[str, str]) -> dict[str, Any]:
    """Take the ssl_* parameters out of those given."""
    checks_name = given.pop("ssl_check_hostname", "true")
    if checks_name not in ("true", "false"):
        raise ValueError(checks_name)
    return {
        "ssl_cert_reqs": ssl.CERT_REQUIRED,
        "ssl_check_hostname": checks_name == "true",
        **_drop_empty(**{name: given.pop(name, "") for name in _TLS_FILES}),
    }


def _drop_empty(**values: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
