"""A real PgBouncer in transaction mode before the tests' Postgres, on a free port of 127.0.0.1."""

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest

from amber.processes import spawn, stop, wait_until
from tests.fixtures.ports import free_port

LOGINS = ("amber", "amber_app", "amber_system")
SESSIONS = 3
"""Of Postgres, for all connections of one login: far fewer than there are."""
OUTSIDE_PATH = "/usr/sbin/pgbouncer"


@dataclass(frozen=True, slots=True)
class PgBouncer:
    port: int
    database: str

    def url(self, login: str) -> str:
        return f"postgresql://{login}@127.0.0.1:{self.port}/{self.database}"

    def show(self, what: str) -> list[dict[str, Any]]:
        """What its console says: `POOLS`, `STATS`, `SERVERS`."""
        console = psycopg.connect(
            f"postgresql://amber@127.0.0.1:{self.port}/pgbouncer",
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,
            row_factory=psycopg.rows.dict_row,
        )
        with console:
            return console.execute(f"SHOW {what}".encode()).fetchall()


def program() -> str:
    """Skips the test where PgBouncer is not installed."""
    found = shutil.which("pgbouncer") or shutil.which(OUTSIDE_PATH)
    if found is None:
        pytest.skip("PgBouncer is not installed (apt-get install pgbouncer)")
    return found


@contextlib.contextmanager
def pooling(database_url: str) -> Iterator[PgBouncer]:
    """One in front of this database, gone with the block."""
    server = urlsplit(database_url)
    folder = parse_qs(server.query)["host"][0]
    made = PgBouncer(free_port(), server.path.strip("/"))
    owner = Path(folder).stat()  # root's PgBouncer runs as Postgres does
    account = (owner.st_uid, owner.st_gid) if os.geteuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="amber-pgbouncer-"))
    home.chmod(0o755)
    users = home / "users.txt"
    users.write_text("".join(f'"{login}" ""\n' for login in LOGINS))
    conf = home / "pgbouncer.ini"
    conf.write_text(_conf(made, folder, server.port or 5432, users))
    with (home / "log").open("ab") as output:
        process = spawn([program(), str(conf)], env={}, account=account, output=output)
    try:
        assert wait_until(lambda: _answers(made), timeout_seconds=30), (home / "log").read_text()
        yield made
    finally:
        stop(process, how=signal.SIGINT, grace_seconds=10)
        shutil.rmtree(home)


def _conf(made: PgBouncer, folder: str, port: int, users: Path) -> str:
    """As docs/scaling.md says it, but for logging in."""
    return f"""
[databases]
{made.database} = host={folder} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {made.port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
admin_users = amber
pool_mode = transaction
default_pool_size = {SESSIONS}
max_client_conn = 500
query_wait_timeout = 10
server_login_retry = 1
"""


def _answers(made: PgBouncer) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        return bool(made.show("VERSION"))
    return False


def direct_url(database_url: str) -> str:
    """The address of Postgres itself, without a login."""
    server = urlsplit(database_url)
    [folder] = parse_qs(server.query)["host"]
    return f"postgresql://{server.path}?host={quote(folder, safe='/')}"
