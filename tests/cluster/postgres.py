"""A primary and a synchronous standby, and the script that promotes it: what Patroni does, in small.

A commit is answered once both have it, as long as there is a standby; without one the primary goes on
alone, or a second death would stop everything. So whatever was accepted survives a promotion, unless the
standby was away just before.
"""

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psycopg

from amber.embedded import make_var, prepare_postgres
from amber.embedded.server import EmbeddedError, Server
from amber.processes import Account
from tests.cluster.members import Member
from tests.cluster.programs import fill

SILENT_SECONDS: Final = 3.0
"""A server that gives no answer for so long is given up: less, and a busy machine loses one that lives."""
LOOK_SECONDS: Final = 0.5
START_SECONDS: Final = 60.0
SETTINGS: Final = "cluster.conf"


class Node:
    """One Postgres with its data. Its socket is for the script, its port for everybody."""

    def __init__(self, name: str, folder: Path, port: int, password: str) -> None:
        self.name = name
        self.home = make_var(folder / name)
        self.port = port
        self._password = password
        self._server: Server | None = None
        self.member = Member(name, [], folder / f"{name}.log", self.is_answering)

    @property
    def data(self) -> Path:
        return self.home / "postgres"

    @property
    def url(self) -> str:
        """Return its address for the superuser."""
        return f"postgresql://amber:{self._password}@127.0.0.1:{self.port}/amber"

    def make(self) -> None:
        """Make its data, with the password that everybody but its owner's socket has to give."""
        server = prepare_postgres(self.home)
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(f"include = '{SETTINGS}'\n")
        _write_for(server.account, self.data / "pg_hba.conf", fill("pg_hba.conf"))
        self.start()
        wait(self.is_listening, self.name)
        with psycopg.connect(server.url, port=self.port, autocommit=True) as connection:
            connection.execute(f"ALTER ROLE amber PASSWORD '{self._password}'".encode())

    def start(self) -> None:
        """Start it on the data that it has. Raises EmbeddedError."""
        self._server = server = prepare_postgres(self.home)
        text = fill("postgresql.conf", port=self.port, name=self.name)
        _write_for(server.account, self.data / SETTINGS, text)
        shared = [part for part in server.argv if part != "listen_addresses="]
        self.member.argv = _without_dangling_options(shared)
        self.member.account, self.member.stop_signal = server.account, server.stop_signal
        self.member.start()

    def is_listening(self) -> bool:
        return self._server is not None and self._server.is_ready(self.member.pid)

    def is_answering(self) -> bool:
        with suppress(psycopg.Error):
            return bool(self.ask("SELECT true"))
        return False

    def ask(self, statement: str) -> Any:
        """Return the first value. Raises psycopg.Error."""
        with psycopg.connect(self.url, autocommit=True, connect_timeout=2) as connection:
            found = connection.execute(statement.encode())
            return found.fetchone()[0] if found.description else None  # type: ignore[index]

    # -- Becoming a standby ------------------------------------------------------------------------

    def copy(self, primary: "Node") -> None:
        """Take a new copy of all that the primary has."""
        self.data.mkdir(mode=0o700)
        self._run_program(
            primary, "pg_basebackup", "-R", "-X", "stream", "-c", "fast", "-d", primary.url
        )

    def rewind(self, primary: "Node") -> None:
        """Take back what this one has and the primary has not, of the time before it died."""
        source = f"--source-server={primary.url}"
        self._run_program(primary, "pg_rewind", "--write-recovery-conf", source)

    def _run_program(self, primary: "Node", name: str, *arguments: str) -> None:
        """Raises EmbeddedError with what it said."""
        programs = Path(primary.member.argv[0]).parent
        uid, gid = primary.member.account or (None, None)
        if uid is not None and gid is not None:
            os.chown(self.data, uid, gid)
        done = subprocess.run(
            [str(programs / name), *arguments, "-D", str(self.data)],
            user=uid,
            group=gid,
            extra_groups=[] if uid is not None else None,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )
        if done.returncode:
            raise EmbeddedError(f"{name} failed: {done.stderr or done.stdout}")


class PostgresPair:
    """Whoever is the primary now, and its standby. `tend` promotes; `on_change` is called when another server
    answers, or may be read."""

    def __init__(
        self, folder: Path, ports: list[int], password: str, on_change: Callable[[], None]
    ) -> None:
        self.primary, self.standby = (
            Node(name, folder, port, password)
            for name, port in zip(("postgres-a", "postgres-b"), ports, strict=True)
        )
        self._on_change = on_change
        self._is_synchronous = False
        self._looked_at = 0.0
        self._heard_at: dict[str, float] = {}

    @property
    def members(self) -> list[Member]:
        return sorted((self.primary.member, self.standby.member), key=lambda m: m.name)

    def start(self) -> None:
        self.primary.make()
        self.standby.copy(self.primary)
        self.standby.start()
        wait(self.is_streaming, "a standby that streams")
        self._make_synchronous(True)

    def tend(self) -> None:
        """Look after both, every LOOK_SECONDS: promote the standby of a silent primary; let the primary
        of a silent standby go on alone, and take the standby in again once it has everything."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        for node in (self.primary, self.standby):
            if node.is_answering() or node.name not in self._heard_at:
                self._heard_at[node.name] = now
        if self._is_given_up(self.primary, now) and self.standby.is_answering():
            self._promote()
        elif self._is_synchronous and self._is_given_up(self.standby, now):
            self._make_synchronous(False)
        elif not self._is_synchronous and self.is_streaming():
            self._make_synchronous(True)

    def rejoin(self) -> None:
        """Start what is dead as the primary's standby, by what it still has, or by a new copy."""
        if self.standby.member.is_alive:
            return
        try:
            self.standby.rewind(self.primary)
            self.standby.start()
        except EmbeddedError:
            self.standby.data.rename(self.standby.home / f"postgres-before-{time.time_ns()}")
            self.standby.copy(self.primary)
            self.standby.start()

    @property
    def readable(self) -> Node:
        """Return who is asked what bears a stale answer: the standby while it keeps step."""
        return self.standby if self._is_synchronous else self.primary

    def is_whole(self) -> bool:
        return self._is_synchronous and self.is_streaming()

    def is_streaming(self) -> bool:
        with suppress(psycopg.Error):
            return bool(
                self.primary.ask(
                    "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
                    " AND pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn) < 1000000"
                )
            )
        return False

    def _is_given_up(self, node: Node, now: float) -> bool:
        return now - self._heard_at[node.name] >= SILENT_SECONDS

    def _promote(self) -> None:
        """Make the standby the primary. The old one is killed first: there must never be two."""
        self.primary.member.kill()
        self.standby.ask("SELECT pg_promote(true, 30)")
        self.primary, self.standby = self.standby, self.primary
        self._make_synchronous(False)
        self.primary.ask("CHECKPOINT")  # pg_rewind looks at the last one

    def _make_synchronous(self, is_synchronous: bool) -> None:
        names = "*" if is_synchronous else ""
        self.primary.ask(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self.primary.ask("SELECT pg_reload_conf()")
        self._is_synchronous = is_synchronous
        self._on_change()


def wait(check: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.1)


def _without_dangling_options(argv: list[str]) -> list[str]:
    """Return the command line without each -c whose setting was taken out."""
    return [
        part
        for part, after in zip(argv, [*argv[1:], ""], strict=True)
        if part != "-c" or "=" in after
    ]


def _write_for(account: Account | None, path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)
    if account is not None:
        os.chown(path, *account)
