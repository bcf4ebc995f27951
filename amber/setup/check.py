"""Say in one sentence what is wrong with the settings: `python -m amber.setup.check`, before a start.

With `--servers` it also knocks at the servers that DATABASE_URL and REDIS_URL name. Ends with 1 if
something is wrong. It must not show a password, and writes nothing.
"""

import os
import sys
from collections.abc import Iterator, Mapping

from django.core.exceptions import ImproperlyConfigured

KNOCK_SECONDS = 5
EMBEDDED = {"DATABASE_URL": "postgresql:///embedded"}
"""Stands for the address of a server that is only about to be started."""


def main(arguments: list[str]) -> int:
    given = {name: os.environ.get(name, "") for name in ("DATABASE_URL", "REDIS_URL")}
    os.environ.update({name: given[name] or url for name, url in EMBEDDED.items()})
    try:
        wrong = next(_wrong_settings(), "")
    except ImproperlyConfigured as exc:
        wrong = str(exc)
    if not wrong and "--servers" in arguments:
        wrong = next(_absent_servers(given), "")
    if wrong:
        sys.stdout.write(f"{wrong}\n")
    return 1 if wrong else 0


def _wrong_settings() -> Iterator[str]:
    """Read what every process reads, then what only the bootstrap does. Raises ImproperlyConfigured."""
    from amber import settings
    from amber.lib.secrets import is_well_formed
    from providers.environment import read_environment

    read_environment()
    key = os.environ.get("AMBER_BOOTSTRAP_API_KEY", "").strip()
    if key and not is_well_formed(key):
        yield "AMBER_BOOTSTRAP_API_KEY is no key of Amber's form: docs/settings.md says how to make one."
    email = os.environ.get("AMBER_ADMIN_EMAIL", "").strip()
    if email and ("@" not in email or " " in email):
        yield f"AMBER_ADMIN_EMAIL={email!r}: must be an address like you@example.com"
    if settings.SECRET_KEY == "":
        yield "AMBER_SECRET_KEY is missing: set it to a long random text; `make run` makes one."


def _absent_servers(given: Mapping[str, str]) -> Iterator[str]:
    """Knock at the servers that are given, as the owner at Postgres: it is the first to log in."""
    name = next((n for n in _OWNERS if os.environ.get(n)), "")
    if given["DATABASE_URL"] and (why := _postgres_refusal(os.environ[name])):
        yield f"{name} names a Postgres that cannot be reached: {why}."
    if given["REDIS_URL"] and (why := _redis_refusal(given["REDIS_URL"])):
        yield f"REDIS_URL names a Redis that cannot be reached: {why}."


_OWNERS = ("AMBER_OWNER_DATABASE_URL", "AMBER_SYSTEM_DATABASE_URL", "DATABASE_URL")


def _postgres_refusal(url: str) -> str:
    import psycopg

    try:
        psycopg.connect(url, connect_timeout=KNOCK_SECONDS).close()
    except psycopg.Error as exc:
        return _first_line(exc)
    return ""


def _redis_refusal(url: str) -> str:
    import redis

    client = redis.Redis.from_url(
        url, socket_connect_timeout=KNOCK_SECONDS, socket_timeout=KNOCK_SECONDS
    )
    try:
        client.ping()
    except (redis.RedisError, OSError) as exc:
        return _first_line(exc)
    finally:
        client.close()
    return ""


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
