"""The whole of it: which processes there are, in which order they begin and end, and who looks after them.

Amber's processes are `manage.py up web`, `up chat` and `up ingest`, two of each, with the settings of an
installation and no others. Passwords are made for one run and kept in no file outside of its folder.
"""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

import psycopg

from amber import installation
from amber.docs_site.place import site_in_var
from amber.embedded import make_var
from tests.cluster.members import Member
from tests.cluster.postgres import PostgresPair
from tests.cluster.programs import ROOT, free_ports
from tests.cluster.proxies import HAProxy, PgBouncer
from tests.cluster.redis_servers import RedisServers

START_SECONDS: Final = 120.0
RESTART_SECONDS: Final = 1.0
"""After so long the machine's own supervisor starts a proxy again that has died, as systemd does."""
COPIES: Final = 2


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = make_var(folder)
        folder.chmod(0o711)  # Postgres runs as another account where this is root
        ports = free_ports(4 + COPIES)
        self.port, self.web_ports = ports[0], ports[4:]
        names = ("amber", "amber_app", "amber_system")
        self._passwords = {name: secrets.token_hex(16) for name in names}
        self.admin_password = secrets.token_hex(8)
        self.postgres = PostgresPair(
            self.folder, ports[1:3], self._passwords["amber"], self._follow_primary
        )
        self.pgbouncer = PgBouncer(self.folder, ports[3], self._passwords)
        self.redis = RedisServers(self.folder, secrets.token_hex(16))
        self.haproxy = HAProxy(self.folder, self.port, self.web_ports)
        self.provider = self._new_provider()
        self.amber: list[Member] = []
        self._died_at: dict[str, float] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def members(self) -> list[Member]:
        engines = [*self.postgres.members, self.pgbouncer.member, *self.redis.members]
        return [self.provider, *engines, *self.amber, self.haproxy.member]

    def member(self, name: str) -> Member:
        return next(each for each in self.members if each.name == name)

    # -- Beginning and ending ----------------------------------------------------------------------

    def start(self, *, with_docs: bool = True) -> None:
        """Start everything. Without docs no web process builds their site."""
        if not with_docs:
            site_in_var(self.folder / "var").mkdir(parents=True)
        self.provider.start()
        self.postgres.start()
        self.pgbouncer.prepare(
            self.postgres.primary.member.account,
            self.postgres.primary.port,
            self.postgres.readable.port,
        )
        self.pgbouncer.member.start()
        self.redis.start()
        self.wait_for(self.provider.is_ready, "the provider")
        self.run("manage.py", "bootstrap")
        self.amber = [*self._new_webs(), *self._new_workers("chat"), *self._new_workers("ingest")]
        for member in (*self.amber, self.haproxy.member):
            member.start()
        self.wait_until_whole()

    def stop(self) -> None:
        for member in reversed(self.members):
            member.stop()

    def wait_until_whole(self, seconds: float = START_SECONDS) -> None:
        self.wait_for(lambda: not self.lacking(), "whole cluster", seconds)

    def lacking(self) -> str:
        """Return what is dead or not ready; empty if nothing is."""
        dead = [each.name for each in self.members if not each.is_alive]
        if dead:
            return ", ".join(dead)
        checks = {
            "postgres": self.postgres.is_whole,
            "redis": self.redis.is_whole,
            "haproxy": self.haproxy.is_whole,
            **{each.name: each.is_ready for each in self.amber},
        }
        return ", ".join(name for name, check in checks.items() if not check())

    # -- Looking after it ----------------------------------------------------------------------------

    def tend(self) -> None:
        """Do once what scripts and supervisors of an installation do: promote, restart proxies."""
        self.postgres.tend()
        for member in (self.pgbouncer.member, self.haproxy.member):
            self._restart_after(member, RESTART_SECONDS)

    def mend(self, member: Member) -> None:
        """Start a dead one again, as whoever repairs the machine does it."""
        if member is self.postgres.standby.member:
            self.postgres.rejoin()
        elif not member.is_alive:
            member.start()

    def mend_all(self, after_seconds: float) -> None:
        """Start again what has been dead for so long, but a primary that nobody has replaced yet."""
        for member in self.members:
            if member is not self.postgres.primary.member:
                self._restart_after(member, after_seconds)

    def _restart_after(self, member: Member, seconds: float) -> None:
        if member.is_alive:
            self._died_at.pop(member.name, None)
        elif time.monotonic() - self._died_at.setdefault(member.name, time.monotonic()) >= seconds:
            self.mend(member)

    def wait_for(
        self, check: Callable[[], object], what: str, seconds: float = START_SECONDS
    ) -> None:
        """Look after everything until the check holds."""
        deadline = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < deadline, f"no {what}: {self.lacking()} ({self.folder})"
            if self.amber:
                self.tend()
            time.sleep(0.05)

    def is_standby_read(self) -> bool:
        """Whether people's requests have read from the standby since it started."""
        sql = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'amber_app')"
        with suppress(psycopg.Error):
            return bool(self.postgres.standby.ask(sql))
        return False

    def _follow_primary(self) -> None:
        self.pgbouncer.point_to(self.postgres.primary.port, self.postgres.readable.port)

    # -- What Amber is told --------------------------------------------------------------------------

    def environ(self) -> dict[str, str]:
        """Return the settings of every process of Amber's."""
        inherited = {n: v for n, v in os.environ.items() if not n.startswith(("AMBER_", "OPENAI_"))}
        var = make_var(self.folder / "var")
        return {
            **inherited,
            **installation.make_secrets(var),
            "AMBER_VAR_DIR": str(var),
            "DATABASE_URL": self._database_url("amber_app"),
            "AMBER_SYSTEM_DATABASE_URL": self._database_url("amber_system"),
            "AMBER_DATABASE_DIRECT_URL": self._direct_url(),
            "DATABASE_REPLICA_URL": f"postgresql://127.0.0.1:{self.pgbouncer.port}/amber_replica",
            "AMBER_PREPARED_STATEMENTS": "0",
            "REDIS_URL": self.redis.url,
            "AMBER_TRUSTED_PROXIES": "1",
            "AMBER_WEB_PROCESSES": "1",
            "AMBER_CHAT_WORKERS": "1",
            "AMBER_ADMIN_PASSWORD": self.admin_password,
            "OPENAI_BASE_URL": (self.folder / "provider.url").read_text(),
            "OPENAI_API_KEY": "fake-key",
            "AMBER_MODEL": "fake-model",
        }

    def run(self, *arguments: str) -> str:
        """A command of the operator's, straight to Postgres; what it printed."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**self.environ(), "AMBER_OWNER_DATABASE_URL": self.postgres.primary.url},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
        return done.stdout

    def new_person(self, name: str, organization: str) -> dict[str, str]:
        """Return the ids and the API key of somebody who owns an organization."""
        who = ("--email", f"{name}@example.com", "--organization", organization, "--api-key")
        made: dict[str, str] = json.loads(self.run("manage.py", "create_account", *who))
        return made

    def query(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.postgres.primary.url) as connection:
            return connection.execute(sql.encode(), parameters).fetchall()

    def _direct_url(self) -> str:
        """Return Postgres' own address, past PgBouncer: whichever of both is the primary now."""
        ports = ",".join(str(node.port) for node in (self.postgres.primary, self.postgres.standby))
        either = f"host=127.0.0.1,127.0.0.1&port={ports}&target_session_attrs=read-write"
        return f"postgresql:///amber?{either}"

    def _database_url(self, login: str) -> str:
        return (
            f"postgresql://{login}:{self._passwords[login]}@127.0.0.1:{self.pgbouncer.port}/amber"
        )

    # -- Amber's processes, and the provider ---------------------------------------------------------

    def _new_webs(self) -> Iterator[Member]:
        for number, port in enumerate(self.web_ports, 1):
            environ = {**self.environ(), "AMBER_PORT": str(port)}
            yield self._new_amber("web", number, environ, partial(_is_healthy, port))

    def _new_workers(self, role: str) -> Iterator[Member]:
        for number in range(1, COPIES + 1):
            member = self._new_amber(role, number, self.environ(), lambda: False)
            member.is_ready = partial(self._is_consuming, member)
            yield member

    def _new_amber(
        self, role: str, number: int, environ: Mapping[str, str], is_ready: Callable[[], bool]
    ) -> Member:
        name = f"{role}-{number}"
        argv = [sys.executable, "manage.py", "up", role]
        return Member(name, argv, self.folder / f"{name}.log", is_ready, environ)

    def _is_consuming(self, member: Member) -> bool:
        sql = "SELECT 1 FROM chats_workerheartbeat WHERE worker LIKE %s"
        with suppress(psycopg.Error):
            return any(self.query(sql, f"%:{pid}:%") for pid in member.pids()[1:])
        return False

    def _new_provider(self) -> Member:
        told = self.folder / "provider.url"
        argv = [
            sys.executable,
            "-m",
            "tests.fakes.provider",
            "--port",
            "0",
            "--ready-file",
            str(told),
        ]
        return Member("provider", argv, self.folder / "provider.log", told.exists)


def _is_healthy(port: int) -> bool:
    with (
        suppress(OSError),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer,
    ):
        return bool(answer.status == 200)
    return False


@contextmanager
def started_cluster(*, with_docs: bool = True) -> Iterator[Cluster]:
    """A whole one, gone with the block, and its folder with it unless something went wrong: Ctrl-C is nothing wrong."""
    folder = Path(tempfile.mkdtemp(prefix="amber-cluster-"))
    cluster = Cluster(folder)
    is_kept = False
    try:
        cluster.start(with_docs=with_docs)
        yield cluster
    except Exception:
        is_kept = True
        raise
    finally:
        cluster.stop()
        if not is_kept:
            rmtree(folder, ignore_errors=True)
