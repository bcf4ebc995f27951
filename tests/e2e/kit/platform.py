"""Amber's real processes for end-to-end tests: each may be killed, stopped and started again.

A Postgres database and a Redis server of their own; web, chat and ingest workers run the command
lines of `amber.up`, workers in copies of a process that has loaded Amber (`tests/e2e/kit/copies.py`).
Every child is tied to this process by the kernel, so nothing stays behind.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit, urlunsplit

import psycopg
import redis

from amber import installation, up
from amber.embedded import prepare_redis
from amber.lib.tracing.start import ENDPOINTS
from amber.processes import spawn, stop
from amber.worker import ROLE_VARIABLE
from tests.e2e.kit.client import Client
from tests.e2e.kit.copies import Loaded
from tests.e2e.kit.link import Address, Link
from tests.fixtures.databases import drop_database, migrated, own_database
from tests.fixtures.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 60
MOST_PAUSE_SECONDS = 0.2
PATIENCE_SECONDS = 40.0
"""What a person may wait for a turn whose worker was killed; nothing here asserts speed."""

SETTINGS = {
    # Provider faults that are silence shall not cost a minute each.
    "AMBER_FIRST_TOKEN_SECONDS": "5",
    "AMBER_IDLE_SECONDS": "5",
    "AMBER_PROVIDER_RETRIES": "1",
    "AMBER_SHUTDOWN_GRACE_SECONDS": "1",
    "AMBER_STREAM_HEARTBEAT_SECONDS": "1",
    "AMBER_TOOL_ALLOWED_HOSTS": "127.0.0.1",
    "DJANGO_SETTINGS_MODULE": "tests.e2e.kit.settings",
    "CELERY_SKIP_CHECKS": "1",
    "PYTHONUNBUFFERED": "1",
}

AS_OWNER = {"AMBER_CONNECT_AS": "owner"}
QUICK_LEASE = {"AMBER_LEASE_SECONDS": "2", "AMBER_SWEEP_SECONDS": "0.5"}
"""Of workers whose turns another takes soon after their death."""


@dataclass(eq=False)
class Member:
    """One running process of the platform."""

    role: str
    process: "subprocess.Popen[bytes]"
    settings: dict[str, str]

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """As the kernel's out-of-memory killer does it."""
        self.process.kill()
        self.process.wait()


class Platform:
    """Everything, once `start` has returned; `restore` brings back what a test has broken."""

    def __init__(self, home: Path, *, provider_url: str, database_url: str) -> None:
        self.home = home
        self.log = home / "platform.log"
        self.port = free_port()
        self.database_url = database_url
        self._redis_server = prepare_redis(home)
        inherited = {n: v for n, v in os.environ.items() if not n.startswith(("AMBER_", "OPENAI_"))}
        self.environ = {
            **inherited,
            **installation.make_secrets(home),
            **SETTINGS,
            "AMBER_VAR_DIR": str(home),
            "AMBER_ADMIN_PASSWORD": "correct horse battery",
            **installation.addresses_of_roles(database_url),
            "REDIS_URL": self._redis_server.url,
            "OPENAI_BASE_URL": provider_url,
            "OPENAI_API_KEY": "fake-key",
            "AMBER_MODEL": "fake-model",
        }
        self.members: list[Member] = []
        self.links: dict[str, Link] = {}
        self._loaded: dict[frozenset[tuple[str, str]], Loaded] = {}

    # -- Starting and stopping -------------------------------------------------------------------

    def start(self) -> None:
        self.start_redis()
        self.command("manage.py", "bootstrap")
        self.command("-m", "tests.e2e.kit.furnish")
        self.start_web(self.port)
        self.start_member("chat")
        self.start_member("ingest")
        self.wait_until_ready()

    def restore(self, **others: dict[str, str] | None) -> None:
        """Redis, one web process, one chat and one ingest worker, with the usual settings.

        `others` are settings of a role that has not the usual ones; None is for a role that stays
        away. A process that has its settings stays.
        """
        self._forget_the_dead()
        if not self._of("redis"):
            self.start_redis()
        for member in list(self.members):
            if member.settings != others.get(member.role, {}):
                self.stop_member(member)
        for spare in self._of("chat")[1:] + self._of("ingest")[1:]:
            self.stop_member(spare)
        if not self._of("web"):
            self.start_web(self.port)
        for role in ("chat", "ingest"):
            settings = others.get(role, {})
            if settings is not None and not self._of(role):
                self.start_member(role, **settings)
        self.wait_until_ready()

    def stop(self) -> None:
        for roles in (("web",), ("chat", "ingest"), ("redis",)):
            for member in [m for m in self.members if m.role in roles]:
                stop(member.process, how=signal.SIGKILL, grace_seconds=10)
        self.members.clear()
        while self._loaded:
            self._loaded.popitem()[1].close()
        for link in self.links.values():
            link.close()

    def put_links(self) -> None:
        """Reach Postgres and Redis through links that can break. This process goes past them."""
        databases = tuple(installation.addresses_of_roles(self.database_url))
        for names, default_port in ((databases, 5432), (("REDIS_URL",), 6379)):
            first = urlsplit(self.environ[names[0]])
            link = self.links[names[0]] = Link(_address_of(first, default_port))
            for name in names:
                url = urlsplit(self.environ[name])
                login = url.netloc.rpartition("@")[0]
                netloc = f"{login}@127.0.0.1:{link.port}"
                self.environ[name] = urlunsplit(url._replace(netloc=netloc, query=""))

    @property
    def postgres_link(self) -> Link:
        return self.links["DATABASE_URL"]

    @property
    def redis_link(self) -> Link:
        return self.links["REDIS_URL"]

    def start_redis(self) -> Member:
        member = self._spawn("redis", self._redis_server.argv, {})
        self.wait_for(lambda: self._redis_server.is_ready(member.pid), "Redis")
        return member

    def start_web(self, port: int, **settings: str) -> Member:
        """A web process; settings other than the usual make it one for this test only."""
        environ = {**self.environ, **settings, "AMBER_PORT": str(port)}
        member = self._spawn("web", up.commands(environ)["web"], settings, environ)
        at = Client(port)
        self.wait_for(lambda: at.get("/healthz", is_checked=False).status == 200, "the web process")
        return member

    def start_member(self, role: str, **settings: str) -> Member:
        """A worker; `chat` or `ingest`. Returns when it consumes."""
        environ = {**self.environ, **settings}
        argv = up.commands(environ)[role]
        if any(environ.get(name) for name in ENDPOINTS):  # spans are there before what has them
            member = self._spawn(role, argv, settings, environ)
        else:
            member = self._copy(role, argv, settings, environ | {ROLE_VARIABLE: "worker"})
        self.wait_for(lambda: self.is_consuming(member), f"the {role} worker")
        return member

    def stop_member(self, member: Member, how: signal.Signals = signal.SIGTERM) -> None:
        """Signal it once and wait for its end."""
        status = stop(member.process, how=how, grace_seconds=PATIENCE_SECONDS)
        assert status != -signal.SIGKILL or how == signal.SIGKILL, f"{member.role} did not stop"
        self._forget_the_dead()

    def _spawn(
        self,
        role: str,
        argv: list[str],
        settings: dict[str, str],
        environ: dict[str, str] | None = None,
    ) -> Member:
        with self.log.open("ab") as output:
            process = spawn(argv, env=environ or dict(os.environ), output=output, cwd=ROOT)
        member = Member(role, process, settings)
        self.members.append(member)
        return member

    def _copy(
        self, role: str, argv: list[str], settings: dict[str, str], environ: dict[str, str]
    ) -> Member:
        """As `_spawn`, but a copy of a process that has loaded Amber with this environment."""
        with self.log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
            copy = self._loaded_with(environ).start(argv[1:], nothing, output, output)
        member = Member(role, copy, settings)
        self.members.append(member)
        return member

    def _loaded_with(self, environ: dict[str, str]) -> Loaded:
        key = frozenset(environ.items())
        if key not in self._loaded:
            self._loaded[key] = Loaded(environ)
        return self._loaded[key]

    def _of(self, role: str) -> list[Member]:
        return [m for m in self.members if m.role == role]

    def _forget_the_dead(self) -> None:
        self.members = [m for m in self.members if m.is_alive]

    @property
    def web(self) -> Member:
        return self._of("web")[0]

    @property
    def chat_worker(self) -> Member:
        return self._of("chat")[0]

    @property
    def ingest_worker(self) -> Member:
        return self._of("ingest")[0]

    @property
    def redis_process(self) -> Member:
        return self._of("redis")[0]

    # -- Looking at it -----------------------------------------------------------------------------

    @property
    def redis(self) -> redis.Redis:
        return redis.Redis.from_url(self._redis_server.url)

    def flush_redis(self) -> None:
        with self.redis as client:
            client.flushall()

    def query(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database_url) as connection:
            return connection.execute(sql.encode(), parameters).fetchall()

    def turns_of(self, member: Member) -> set[str]:
        """The ids of the turns that it runs."""
        sql = "SELECT id FROM chats_turn WHERE status = 'running' AND worker LIKE %s"
        return {str(pk) for (pk,) in self.query(sql, f"%:{member.pid}:%")}

    def is_consuming(self, member: Member) -> bool:
        assert member.is_alive, f"{member.role} ended; {self.said_last()}"
        sql = "SELECT 1 FROM chats_workerheartbeat WHERE worker LIKE %s"
        return bool(self.query(sql, f"%:{member.pid}:%"))

    def readiness(self) -> int:
        return Client(self.port).get("/readyz", is_checked=False).status

    def wait_until_ready(self) -> None:
        self.wait_for(lambda: self.readiness() == 200, "readiness")

    def wait_for(self, check: Any, what: str, seconds: float = START_SECONDS) -> None:
        """Look again after longer and longer pauses: a look costs a connection or a request."""
        deadline, pause_seconds = time.monotonic() + seconds, 0.02
        while not check():
            assert time.monotonic() < deadline, f"no {what}; {self.said_last()}"
            time.sleep(pause_seconds)
            pause_seconds = min(pause_seconds * 1.5, MOST_PAUSE_SECONDS)

    def said_last(self, chars: int = 3_000) -> str:
        return self.log.read_text(errors="replace")[-chars:]

    def run(self, *arguments: str, typed: str = "") -> str:
        """A process of its own with the platform's environment, given this input; what it printed."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environ,
            input=typed,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        return done.stdout

    def command(self, *arguments: str, typed: str = "") -> str:
        """As `run` for what an operator does, in a copy of a process that stays."""
        return self._loaded_with(self.environ | AS_OWNER).run(*arguments, typed=typed)

    def new_person(self, name: str, organization: str) -> Client:
        """Somebody with a key in this organization."""
        names = ("--email", f"{name}@example.com", "--organization", organization, "--api-key")
        made = json.loads(self.command("manage.py", "create_account", *names))
        return Client(self.port, key=made["api_key"])


@contextmanager
def started_platform(
    provider_url: str, template: str | None = None, **settings: str
) -> Iterator[Platform]:
    """A whole one, gone with the block; `settings` differ from the usual in all its processes.

    Its database is a copy of `template`, of the migrated one if None.
    """
    with _new_platform(provider_url, template or migrated(), settings) as platform:
        platform.start()
        yield platform


@contextmanager
def linked_platform(provider_url: str, **settings: str) -> Iterator[Platform]:
    """As `started_platform`, reaching its servers through links that can break."""
    with _new_platform(provider_url, migrated(), settings) as platform:
        platform.put_links()
        platform.start()
        yield platform


@contextmanager
def pooled_platform(
    provider_url: str, pooled: Callable[[str], AbstractContextManager[Mapping[str, str]]]
) -> Iterator[Platform]:
    """As `started_platform`; `pooled` gives it the settings that lead around its database's address."""
    with (
        _new_platform(provider_url, migrated(), {}) as platform,
        pooled(platform.database_url) as settings,
    ):
        platform.environ.update(settings)
        platform.start()
        yield platform
        platform.stop()


@contextmanager
def _new_platform(provider_url: str, template: str, settings: dict[str, str]) -> Iterator[Platform]:
    home = Path(tempfile.mkdtemp(prefix="amber-e2e-"))
    name = f"amber_e2e_{secrets.token_hex(4)}"
    address = own_database(name, template)
    platform = Platform(home, provider_url=provider_url, database_url=address)
    platform.environ.update(settings)
    try:
        yield platform
    finally:
        platform.stop()
        drop_database(name)
        shutil.rmtree(home, ignore_errors=True)


def _address_of(url: SplitResult, default_port: int) -> Address:
    """Where the server of this address listens."""
    port = url.port or default_port
    [folder] = parse_qs(url.query).get("host", [""])
    return f"{folder}/.s.PGSQL.{port}" if folder else (url.hostname or "127.0.0.1", port)
