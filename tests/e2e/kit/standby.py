"""A real standby of the tests' Postgres: it streams the primary's log, and can stop replaying it."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import psycopg

from amber import embedded
from amber.processes import Account, spawn, stop, wait_until


class Standby:
    """One of the whole server, at a socket of its own. `database_url` is the primary's."""

    def __init__(self, home: Path, database_url: str) -> None:
        self._home = home
        self._primary = urlsplit(database_url)
        [self._primary_folder] = parse_qs(self._primary.query)["host"]
        owner = Path(self._primary_folder).stat()
        self._account: Account | None = None
        if os.geteuid() == 0:  # Postgres refuses to run as root
            self._account = (owner.st_uid, owner.st_gid)
            os.chown(home, *self._account)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Of this database there, without a login."""
        return f"postgresql://{self._primary.path}?host={quote(str(self._home), safe='/')}"

    def copy(self) -> None:
        """Copy the primary, which keeps its log for this standby from now on, also while that is stopped."""
        self._run(
            *("pg_basebackup", "-h", self._primary_folder, "-U", "amber", "-R", "-c", "fast"),
            *("-C", "-S", self._slot),
        )

    def forget(self) -> None:
        """Let the primary throw away the log that it has kept."""
        _ask(self._primary.geturl(), f"SELECT pg_drop_replication_slot('{self._slot}')")

    def start(self) -> None:
        options = {
            "unix_socket_directories": str(self._home),
            "listen_addresses": "",
            "fsync": "off",
            "max_connections": _ask(self._primary.geturl(), "SHOW max_connections"),
            # After a pause it would cancel whoever reads old rows, and so the statement that ends the pause.
            "max_standby_streaming_delay": "-1",
        }
        argv = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self._home / "log").open("ab") as output:
            self._process = spawn(
                [self._program("postgres"), "-D", self._data, *argv],
                env={"PATH": os.environ["PATH"]},
                account=self._account,
                orphaned=signal.SIGINT,
                output=output,
            )
        assert wait_until(self._answers, timeout_seconds=60), (self._home / "log").read_text()

    def stop(self) -> None:
        if self._process is not None:
            stop(self._process, how=signal.SIGINT, grace_seconds=30)
            self._process = None

    def pause(self) -> None:
        """Go on receiving the log, and show nothing new of it."""
        self.ask("SELECT pg_wal_replay_pause()")
        assert wait_until(
            lambda: self.ask("SELECT pg_get_wal_replay_pause_state()") == "paused",
            timeout_seconds=60,
        )

    def resume(self) -> None:
        self.ask("SELECT pg_wal_replay_resume()")

    def ask(self, sql: str) -> object:
        """As the superuser; the first column."""
        return _ask(self.url.replace("postgresql://", "postgresql://amber@"), sql)

    @property
    def _slot(self) -> str:
        return re.sub(r"\W", "_", self._home.name.lower())

    @property
    def _data(self) -> str:
        return str(self._home / "data")

    def _program(self, name: str) -> str:
        return str(programs(self._primary_folder) / name)

    def _run(self, name: str, *arguments: str) -> None:
        uid, gid = self._account or (None, None)
        subprocess.run(
            [self._program(name), "-D", self._data, *arguments],
            user=uid,
            group=gid,
            extra_groups=[] if self._account else None,
            cwd="/",
            check=True,
        )

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError):
            return bool(self.ask("SELECT pg_is_in_recovery()"))
        return False


def _ask(url: str, sql: str) -> object:
    with psycopg.connect(url, autocommit=True) as asked:
        (found,) = asked.execute(sql.encode()).fetchone() or (None,)
        return found


def programs(socket_folder: str) -> Path:
    """Where the tests' Postgres itself runs from: within reach of its account."""
    [pid, *_] = (Path(socket_folder) / ".s.PGSQL.5432.lock").read_text().splitlines()
    return Path(f"/proc/{pid}/exe").resolve().parent


@contextlib.contextmanager
def replicating(database_url: str) -> Iterator[Standby]:
    """A running standby, gone with the block."""
    assert embedded.programs_folder() is not None
    home = Path(tempfile.mkdtemp(prefix="amber-standby-"))
    standby = Standby(home, database_url)
    try:
        standby.copy()
        try:
            standby.start()
            yield standby
        finally:
            standby.stop()
            standby.forget()
    finally:
        shutil.rmtree(home)
