"""Start everything that is measured, as real processes on 127.0.0.1.

These are the fake provider, the bare proxy in front of it, LiteLLM's gateway if it is asked for, and Amber as `manage.py up` starts it,
in a fresh folder. Nothing here measures streams; processes are found and stopped by their ids, and
none outlives the bench.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import Any

import psutil
import psycopg
from psycopg import sql

from amber import installation, processes, up
from amber.lib.secrets import new_api_key
from bench import litellm_gateway

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 300
STOP_SECONDS = 60
_AS_WORKERS = {"DJANGO_SETTINGS_MODULE": "amber.settings", "AMBER_LOCK_SECONDS": "0"}
"""Settings of driven modules: they wait for locks as long as workers do, which say no limit before a statement."""


def vacuum(*tables: str, url: str = "") -> None:
    """Tell the planner of rows that were written at once, as autovacuum would a little later.

    As the owner: of others Postgres skips the tables, with a warning only. `url` is the owner's; modules that
    `Stand.drive` runs know it.
    """
    address = url or os.environ["AMBER_OWNER_DATABASE_URL"]
    with psycopg.connect(address, autocommit=True) as owner:
        names = sql.SQL(", ").join(map(sql.Identifier, tables))
        owner.execute(sql.SQL("VACUUM ANALYZE {}").format(names))


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes. `pss` counts a page that processes share once; None if the system cannot."""

    rss: float
    pss: float | None


@dataclass(frozen=True, slots=True)
class RunningAmber:
    url: str
    api_key: str
    database_url: str
    """Of the owner."""
    supervisor: psutil.Process
    commands: Mapping[str, list[str]]
    """By role: how the supervisor's children are told apart from the databases."""
    healthy_seconds: float
    """From the command to a 200 of /healthz."""
    ready_seconds: float
    """From the command to a 200 of /readyz: workers consume."""

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return all processes of Amber's own by role: a process, then its descendants."""
        children = self.supervisor.children()
        found = {"supervisor": [self.supervisor]}
        for role in ("web", "chat", "ingest"):
            found[role] = [
                process
                for child in children
                if _command_of(child) == self.commands[role]
                for process in _family(child)
            ]
        return found

    def cpu_seconds(self) -> dict[str, float]:
        """Used so far, by role."""
        return {
            role: sum(cpu_seconds(each) for each in members)
            for role, members in self.processes().items()
        }

    def database_cpu_seconds(self) -> float:
        """Return the CPU seconds used so far by Postgres and Redis."""
        return sum(cpu_seconds(each) for each in self.servers())

    def servers(self) -> list[psutil.Process]:
        """Return Postgres and Redis: each process, then its descendants."""
        own = {each.pid for members in self.processes().values() for each in members}
        return [
            each
            for server in self.supervisor.children()
            if server.pid not in own
            for each in _family(server)
        ]

    def memory(self) -> dict[str, Memory]:
        """Return the memory held now, by role; a pool's child apart from its parent."""
        return {
            role if number == 0 else f"{role} child {number}": memory(each)
            for role, members in self.processes().items()
            for number, each in enumerate(members)
        }


def _command_of(process: psutil.Process) -> list[str]:
    """Return its command line; nothing of one that is gone, as what builds the docs soon is."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def _family(process: psutil.Process) -> list[psutil.Process]:
    """Return a process, then its descendants; nothing of one that is gone."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_seconds(process: psutil.Process) -> float:
    """Used so far, that of its ended children included; nothing of one that is gone."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system + times.children_user + times.children_system


def memory(process: psutil.Process) -> Memory:
    held = process.memory_full_info()
    pss = getattr(held, "pss", None)
    return Memory(held.rss / 2**20, None if pss is None else pss / 2**20)


class Stand:
    """Starts what a measurement asks for. All Ambers of one stand share a var directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._api_key = new_api_key()
        self._environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AMBER_", "FAKE_", "OPENAI_", "DJANGO_"))
        }

    @contextmanager
    def provider(self) -> Iterator[str]:
        """Start the fake provider; yield its base URL."""
        ready_file = self.folder / "provider.url"
        ready_file.unlink(missing_ok=True)
        argv = ["-m", "tests.fakes.provider", "--port", "0", "--ready-file", str(ready_file)]
        with self._running("provider", argv, {}) as process:
            self._wait(process, "provider", ready_file.exists)
            yield ready_file.read_text()

    @contextmanager
    def bare_proxy(self, provider_url: str) -> Iterator[tuple[str, psutil.Process]]:
        """Start the proxy; yield its base URL and its process."""
        port = free_port()
        argv = ["-m", "uvicorn", "bench.bare_proxy:application", "--port", str(port)]
        argv += ["--loop", "uvloop", "--http", "httptools", "--ws", "none", "--no-access-log"]
        address = {"OPENAI_BASE_URL": provider_url, "OPENAI_API_KEY": "fake"}
        with self._running("proxy", argv, address) as process:
            url = f"http://127.0.0.1:{port}"
            self._wait(process, "proxy", lambda: answers(f"{url}/healthz"))
            yield f"{url}/v1", psutil.Process(process.pid)

    @contextmanager
    def litellm(self, provider_url: str) -> Iterator[str]:
        """Start LiteLLM's gateway; yield its base URL. Installs it when it is asked for first."""
        python = litellm_gateway.install(ROOT / "var" / "bench-litellm")
        port = free_port()
        argv = litellm_gateway.command(python, self.folder, provider_url=provider_url, port=port)
        with self._running("litellm", argv, litellm_gateway.ENVIRON, python=python) as process:
            url = f"http://127.0.0.1:{port}"
            self._wait(process, "litellm", lambda: answers(f"{url}/health/liveliness"))
            yield f"{url}/v1"

    @contextmanager
    def amber(self, provider_url: str, **settings: str) -> Iterator[RunningAmber]:
        """Start all of Amber, ready to consume. A second one finds what the first left."""
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        environ = {
            "AMBER_VAR_DIR": str(self.folder / "var"),
            "AMBER_PORT": str(port),
            "AMBER_BOOTSTRAP_API_KEY": self._api_key,
            "AMBER_ADMIN_PASSWORD": secrets.token_urlsafe(),
            "AMBER_SHUTDOWN_GRACE_SECONDS": "1",
            "AMBER_TOOL_ALLOWED_HOSTS": "127.0.0.1",
            "AMBER_MODEL": "fake-model",
            "OPENAI_BASE_URL": provider_url,
            "OPENAI_API_KEY": "fake",
            # Empty, so that an .env of this checkout does not point the bench at real servers.
            "DATABASE_URL": "",
            "REDIS_URL": "",
            **settings,
        }
        began = time.monotonic()
        with self._running("amber", ["manage.py", "up"], environ) as process:
            self._wait(process, "amber", lambda: answers(f"{url}/healthz"))
            healthy = time.monotonic() - began
            self._wait(process, "amber", lambda: answers(f"{url}/readyz"))
            ready = time.monotonic() - began
            commands = up.commands({**self._environ, **environ})
            supervisor = psutil.Process(process.pid)
            address = self.database_url()
            yield RunningAmber(url, self._api_key, address, supervisor, commands, healthy, ready)

    def drive(self, module: str, *arguments: object, timeout_seconds: float) -> Any:
        """Run a module in a process with the settings of the Amber that runs; return the JSON of its last line."""
        done = subprocess.run(
            [sys.executable, "-m", module, *map(str, arguments)],
            env={**os.environ, **self.remembered(), **_AS_WORKERS},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            timeout=timeout_seconds,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1])

    def database_url(self) -> str:
        """Return the database's address for its owner, of the Amber that runs, or ran last."""
        return self.remembered()["AMBER_OWNER_DATABASE_URL"]

    def remembered(self) -> dict[str, str]:
        """Return the settings that Amber generated for itself: addresses and keys."""
        return dict(installation.read_kept(self.folder / "var"))

    @contextmanager
    def _running(
        self,
        name: str,
        argv: list[str],
        environ: Mapping[str, str],
        *,
        python: Path = Path(sys.executable),
    ) -> Iterator["subprocess.Popen[bytes]"]:
        with self._log(name).open("ab") as log:
            process = processes.spawn(
                [str(python), *argv],
                env={**self._environ, **environ},
                orphaned=SIGTERM,
                output=log,
                cwd=ROOT,
            )
            try:
                yield process
            finally:
                processes.stop(process, how=SIGTERM, grace_seconds=STOP_SECONDS)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _wait(
        self, process: "subprocess.Popen[bytes]", name: str, check: Callable[[], bool]
    ) -> None:
        """Wait until the process answers. Raises RuntimeError with its output."""
        over = processes.wait_until(
            lambda: process.poll() is not None or check(), timeout_seconds=START_SECONDS
        )
        if not over or process.poll() is not None:
            said = self._log(name).read_text(errors="replace")[-4_000:]
            raise RuntimeError(f"{name} did not start:\n{said}")


@contextmanager
def stand() -> Iterator[Stand]:
    """Make a stand in a new folder, which is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="amber-bench-"))
    folder.chmod(0o711)  # started by root, the database runs under another account
    try:
        yield Stand(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_key(email: str, organization: str, environ: Mapping[str, str]) -> str:
    """Return an API key of this person, who is made where there is none, in the Amber of this environment."""
    named = ("--email", email, "--organization", organization, "--api-key")
    done = subprocess.run(
        [sys.executable, "manage.py", "create_account", *named],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        check=True,
    )
    return str(json.loads(done.stdout)["api_key"])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Return whether a GET gives 200, past any proxy of the environment."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
