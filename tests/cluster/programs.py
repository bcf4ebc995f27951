"""Find the engines on this machine, and fill in the files that configure them."""

import secrets
import shutil
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CONFIGURATIONS: Final = ROOT / "deploy" / "cluster"
PROGRAMS: Final = ("haproxy", "pgbouncer", "redis-server", "redis-sentinel")
ADMIN_FOLDERS: Final = "/usr/sbin:/sbin"
"""Where Debian has some of them, and the PATH of a plain user has not."""

PORTS: Final = range(15_000, 32_000)


class ProgramsMissing(Exception):
    """Engines are not installed; the text says what to do."""


@cache
def program(name: str) -> str:
    """Return the path of an engine. Raises ProgramsMissing, which names all that are missing."""
    missing = [each for each in PROGRAMS if not find(each)]
    if missing:
        raise ProgramsMissing(
            f"Not installed: {', '.join(missing)}. On Debian, as root: apt-get install "
            "--no-install-recommends haproxy pgbouncer redis-server redis-sentinel"
        )
    return find(name) or name


def find(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=ADMIN_FOLDERS)


def fill(file: str, /, **values: object) -> str:
    """Return the file of that name in `deploy/cluster`, filled in. Raises KeyError for a name without a value."""
    text = (CONFIGURATIONS / file).read_text()
    return Template(text).substitute({key: str(value) for key, value in values.items()})


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, each another one.

    Below those that the kernel gives to outgoing connections: a dead server's port stays free until it
    comes back.
    """
    probes: list[socket.socket] = []
    while len(probes) < count:
        with suppress(OSError):
            probes.append(socket.create_server(("127.0.0.1", secrets.choice(PORTS))))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
