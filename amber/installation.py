"""Keep what one installation has in its var directory besides data: secrets and addresses.

    var/secrets.env      made once, 0600: Django's key and the key ring for stored secrets
    var/addresses.env    where the embedded servers of the last `up` are, 0600

It refuses to replace a secret: whatever was encrypted with it would be lost.
"""

import base64
import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from dotenv import dotenv_values


def read_kept(var: Path) -> dict[str, str]:
    """Return everything kept in `var`, by name; empty before the first `up`."""
    return _read(var / "addresses.env") | _read(var / "secrets.env")


def make_secrets(var: Path) -> dict[str, str]:
    """Return this installation's secrets, made at the first call. Two callers get the same ones."""
    fresh = {
        "AMBER_SECRET_KEY": _random(48),
        "AMBER_SECRET_KEYS": _random(32),
    }
    if not (var / "secrets.env").exists():
        unpublished = _write_beside(var / "secrets.env", fresh)
        with contextlib.suppress(FileExistsError):
            (var / "secrets.env").hardlink_to(unpublished)
        unpublished.unlink()
    return _read(var / "secrets.env")


def remember_addresses(var: Path, addresses: Mapping[str, str]) -> None:
    """Keep the addresses of the embedded servers for commands in other terminals."""
    _write_beside(var / "addresses.env", addresses).rename(var / "addresses.env")


def addresses_of_roles(url: str) -> dict[str, str]:
    """Return the database's addresses for each role, given that of its superuser, who needs no
    password here."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]

    def login(role: str) -> str:
        return urlunsplit(parts._replace(netloc=f"{role}@{host}"))

    return {
        "DATABASE_URL": login("amber_app"),
        "AMBER_SYSTEM_DATABASE_URL": login("amber_system"),
        "AMBER_OWNER_DATABASE_URL": url,
    }


def _random(size_bytes: int) -> str:
    """Return random bytes in base64. `secrets` would do, but its import keeps 4 MB of OpenSSL."""
    return base64.b64encode(os.urandom(size_bytes)).decode()


def _read(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    return {name: value for name, value in dotenv_values(path).items() if value}


def _write_beside(path: Path, values: Mapping[str, str]) -> Path:
    """Write a new 0600 file in the same folder, complete before anybody knows its name."""
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "w") as unpublished:
        unpublished.writelines(f"{name}='{value}'\n" for name, value in values.items())
    return Path(name)
