"""Say in one sentence what is wrong with the settings: `python -m amber.setup.check`, before a start.

With `--servers` it also knocks at the servers that DATABASE_URL, REDIS_URL and AMBER_FILES_URL name. Ends with 1 if
something is wrong. It must not show a password, and writes nothing.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from amber.lib.workers import garbage

KNOCK_SECONDS = 5
EMBEDDED = {"DATABASE_URL": "postgresql:///embedded"}
"""Stands for the address of a server that is only about to be started."""


def main(arguments: list[str]) -> int:
    garbage.put_off()
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
    from amber.lib.egress.policy import EgressPolicy
    from amber.lib.secrets import is_well_formed
    from providers.environment import read_environment

    read_environment()
    key = os.environ.get("AMBER_BOOTSTRAP_API_KEY", "").strip()
    if key and not is_well_formed(key):
        yield "AMBER_BOOTSTRAP_API_KEY is no key of Amber's form: docs/settings.md says how to make one."
    email = os.environ.get("AMBER_ADMIN_EMAIL", "").strip()
    if email and ("@" not in email or " " in email):
        yield f"AMBER_ADMIN_EMAIL={email!r}: must be an address like you@example.com"
    try:
        EgressPolicy.allowing(settings.AMBER_TOOL_ALLOWED_HOSTS)
    except ValueError as exc:
        yield f"AMBER_TOOL_ALLOWED_HOSTS: {exc}"
    if settings.SECRET_KEY == "":
        yield "AMBER_SECRET_KEY is missing: set it to a long random text; `make run` makes one."


def _absent_servers(given: Mapping[str, str]) -> Iterator[str]:
    """Knock at the servers that are given, as the owner at Postgres: it is the first to log in."""
    from amber import settings

    name = next((n for n in _OWNERS if os.environ.get(n)), "")
    if given["DATABASE_URL"] and (why := _postgres_refusal(settings.AMBER_DATABASES["owner"])):
        yield f"{name} names a Postgres that cannot be reached: {why}."
    if given["REDIS_URL"] and (why := _redis_refusal(given["REDIS_URL"])):
        yield f"REDIS_URL names a Redis that cannot be reached: {why}."
    for name in ("AMBER_FILES_URL", "AMBER_FILES_OLD_URL"):
        if why := _storage_refusal(name):
            yield f"{name} names a place for files that cannot be used: {why}."


_OWNERS = (
    "AMBER_DATABASE_DIRECT_URL",
    "AMBER_OWNER_DATABASE_URL",
    "AMBER_SYSTEM_DATABASE_URL",
    "DATABASE_URL",
)
"""The first that is given says where the owner logs in."""


def _postgres_refusal(database: Mapping[str, Any]) -> str:
    import psycopg

    place = {"host": database["HOST"], "port": database["PORT"], "dbname": database["NAME"]}
    login = {"user": database["USER"], "password": database["PASSWORD"]}
    options = {**database["OPTIONS"], "connect_timeout": KNOCK_SECONDS}
    known = {name: value for name, value in (place | login).items() if value}
    try:
        psycopg.connect(**known, **options).close()
    except psycopg.Error as exc:
        return _first_line(exc)
    return ""


def _redis_refusal(url: str) -> str:
    import redis

    from amber.lib.redis import open_client

    client = open_client(url)
    try:
        client.ping()
    except (redis.RedisError, OSError) as exc:
        return _first_line(exc)
    finally:
        client.close()
    return ""


def _storage_refusal(name: str) -> str:
    from amber.lib.storage.address import read_storage
    from amber.lib.storage.files import open_storage

    entry = read_storage(name)
    try:
        if entry:
            open_storage(entry).check()
    except OSError as exc:
        return _first_line(exc)
    return ""


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
