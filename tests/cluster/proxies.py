"""HAProxy before the web processes, PgBouncer before Postgres: configured, reloaded, pointed elsewhere."""

import csv
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from amber.embedded import make_var
from amber.processes import Account
from tests.cluster.members import Member
from tests.cluster.programs import fill, program


class HAProxy:
    def __init__(self, folder: Path, port: int, web_ports: list[int]) -> None:
        self._home = make_var(folder / "haproxy")
        settings = self._home / "haproxy.cfg"
        named = {f"web{number}_port": each for number, each in enumerate(web_ports, 1)}
        settings.write_text(fill("haproxy.cfg", folder=self._home, port=port, **named))
        # A master that stays, and a worker for each configuration that it was told to load.
        argv = [program("haproxy"), "-W", "-f", str(settings)]
        self.member = Member("haproxy", argv, folder / "haproxy.log", self._is_answering)

    def reload(self) -> None:
        """Let a new worker take over; the old one goes on with its streams."""
        os.kill(self.member.pid, signal.SIGUSR2)

    def states(self) -> dict[str, str]:
        """Return UP, DOWN, or words that begin so, by web process. Raises OSError."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect(str(self._home / "haproxy.sock"))
            connection.sendall(b"show stat\n")
            said = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
        rows = csv.DictReader(said.removeprefix("# ").splitlines())
        return {row["svname"]: row["status"] for row in rows if row["svname"].startswith("web")}

    def is_whole(self) -> bool:
        return self._is_answering() and set(self.states().values()) == {"UP"}

    def _is_answering(self) -> bool:
        with suppress(OSError):
            return bool(self.states())
        return False


class PgBouncer:
    """`account` is whose process it is, since it refuses to be root's."""

    def __init__(self, folder: Path, port: int, passwords: Mapping[str, str]) -> None:
        self.port = port
        self._home = make_var(folder / "pgbouncer")
        self._settings = self._home / "pgbouncer.ini"
        self._passwords = passwords
        argv = [program("pgbouncer"), str(self._settings)]
        self.member = Member("pgbouncer", argv, folder / "pgbouncer.log", self._is_listening)

    def prepare(self, account: Account | None, primary_port: int, replica_port: int) -> None:
        self.member.account = account
        users = "".join(f'"{name}" "{secret}"\n' for name, secret in self._passwords.items())
        self._write(self._home / "users.txt", users)
        self.point_to(primary_port, replica_port)

    def point_to(self, primary_port: int, replica_port: int) -> None:
        """Send new transactions there from now on."""
        text = fill(
            "pgbouncer.ini",
            folder=self._home,
            port=self.port,
            primary_port=primary_port,
            replica_port=replica_port,
        )
        self._write(self._settings, text)
        if self.member.is_alive:
            os.kill(self.member.pid, signal.SIGHUP)

    def _write(self, path: Path, text: str) -> None:
        fresh = path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(text)
        if self.member.account is not None:
            os.chown(fresh, *self.member.account)
        fresh.rename(path)

    def _is_listening(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False
