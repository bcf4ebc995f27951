"""Run Postgres, Redis, web, chat worker and ingest worker until Ctrl-C: `manage.py up`.

Servers that DATABASE_URL and REDIS_URL name are used instead of embedded ones. Stopped in the
order web, workers, Redis, Postgres. It never imports Django, so that the process that stays is
small: migrating and bootstrapping is one child that ends again. With names (`up web chat`) it
runs those roles only, on as many machines and containers as share the servers.
"""

import contextlib
import fcntl
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from amber import embedded, installation
from amber.supervisor import Child, Supervisor

HERE = Path(__file__).resolve().parent.parent
ROLES = ("bootstrap", "web", "chat", "ingest")
STANDALONE = ("backup", "restore")
WEB_KEEP_ALIVE_SECONDS = 130
"""Longer than a proxy keeps an idle connection (Caddy 120 s, nginx 60 s): the side that sends the
next request must be the one that closes, or a request meets a connection that has just gone."""
HTTP_PROTOCOL = "amber.web.http_protocol:BoundedHttpProtocol"
STOP_ORDER = (("bootstrap", "docs"), ("web",), ("chat", "ingest"), ("redis",), ("postgres",))
# Marks every process of Amber's own in its environment, so that the next start finds leftovers.
MARK = "AMBER_SUPERVISED_BY"

CREDENTIALS = ("Administrator: ", "Password, shown only once: ", "API key of ")
"""How the bootstrap's lines begin that a first start shows in a box, last of all."""
INGEST_GRACE_SECONDS = 10  # a document resumes at its last stage
MARGIN_SECONDS = 10  # for a worker to store what it released after its grace
SERVER_PAUSE_SECONDS = 1  # before a server that died is started again: everything waits for it
SERVER_GRACE_SECONDS = 60  # Postgres writes its checkpoint; killing it only delays the next start


COUNTS = {"chat": ("AMBER_CHAT_WORKERS", 1 / 2), "web": ("AMBER_WEB_PROCESSES", 1 / 4)}
"""By role: the setting, and the share of the cores that gets a process: a turn costs a chat worker
twice what it costs the web, and Postgres needs the rest."""
MOST_BY_ITSELF = 4
MOST_PROCESSES = 64
MB_OF_THE_MACHINE = 1_000  # a process may grow to 250 MB, and each role takes a quarter at most


class StartError(Exception):
    """Amber cannot run here; the message says why."""


def commands(environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the command line of each role."""
    python = [sys.executable, "-m"]
    chat = [*python, "amber.worker", "chat", "--threads"]
    ingest = [*python, "amber.worker", "ingest", "--threads"]
    web = ["--host", _host(environ), "--port", str(_port(environ)), "--loop", "uvloop"]
    web += ["--http", HTTP_PROTOCOL, "--ws", "none", "--no-access-log", "--log-level", "warning"]
    web += ["--no-server-header", "--timeout-graceful-shutdown", str(math.ceil(_grace(environ)))]
    web += ["--timeout-keep-alive", str(WEB_KEEP_ALIVE_SECONDS)]
    web.append("--no-proxy-headers")  # AMBER_TRUSTED_PROXIES alone says whom to believe
    if (count := process_count("web", environ)) > 1:
        web += ["--workers", str(count)]
    return {
        "bootstrap": [sys.executable, "manage.py", "bootstrap"],
        "web": [*python, "uvicorn", "amber.asgi:application", *web],
        "chat": [*chat, environ.get("AMBER_CHAT_CONCURRENCY") or "128"],
        "ingest": [*ingest, environ.get("AMBER_INGEST_CONCURRENCY") or "2"],
    }


def process_count(role: str, environ: Mapping[str, str]) -> int:
    """Return how many processes a role gets: what the setting says, else by cores and memory.

    A chat worker and a web process fill one core each at most. Raises StartError for no number.
    """
    if role not in COUNTS:
        return 1
    setting, share_of_cores = COUNTS[role]
    raw = environ.get(setting) or "0"
    if not raw.isdecimal() or int(raw) > MOST_PROCESSES:
        raise StartError(
            f"{setting}={raw!r}: must be a number of processes up to {MOST_PROCESSES}."
        )
    fitting = min(_cores() * share_of_cores, _memory_mb() / MB_OF_THE_MACHINE)
    return int(raw) or max(int(min(fitting, MOST_BY_ITSELF)), 1)


def _cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _memory_mb() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20


def _host(environ: Mapping[str, str]) -> str:
    return environ.get("AMBER_HOST") or "127.0.0.1"


def _port(environ: Mapping[str, str]) -> int:
    raw = environ.get("AMBER_PORT") or "8000"
    if not raw.isdecimal() or not 0 < int(raw) < 65536:
        raise StartError(f"AMBER_PORT={raw!r}: must be a port between 1 and 65535.")
    return int(raw)


def _grace(environ: Mapping[str, str]) -> float:
    return _seconds(environ, "AMBER_SHUTDOWN_GRACE_SECONDS", "20")


def _drain(environ: Mapping[str, str]) -> float:
    return _seconds(environ, "AMBER_DRAIN_SECONDS", "0")


def _seconds(environ: Mapping[str, str], name: str, default: str) -> float:
    raw = environ.get(name) or default
    try:
        return float(raw)
    except ValueError:
        raise StartError(f"{name}={raw!r}: must be a number.") from None


def main(roles: Sequence[str] = ()) -> int:
    """Run the roles (all, if none is named) until Ctrl-C. Returns the exit status."""
    began = time.monotonic()
    supervisor = Supervisor(sys.stdout.buffer)
    try:
        if unknown := set(roles) - set(ROLES):
            raise StartError(
                f"Unknown: {', '.join(sorted(unknown))}. The roles are {', '.join(ROLES)}."
            )
        if roles and not (os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL")):
            raise StartError("To run a part of Amber, set DATABASE_URL and REDIS_URL.")
        var = embedded.make_var(Path(os.environ.get("AMBER_VAR_DIR") or HERE / "var"))
        with contextlib.nullcontext("") if roles else _only_one(var / "up.lock") as mark:
            return _run(supervisor, var, {**os.environ, MARK: mark}, roles or ROLES, began)
    except (StartError, embedded.EmbeddedError) as error:
        supervisor.say(str(error))
        return 1
    except OSError as error:
        supervisor.say(f"Amber cannot use {error.filename}: {error.strerror}.")
        return 1


def _run(
    supervisor: Supervisor,
    var: Path,
    environ: dict[str, str],
    roles: Sequence[str],
    began: float,
) -> int:
    if "web" in roles:
        _check_port(_host(environ), _port(environ))
    grace_seconds = _grace(environ)
    argv = commands(environ)
    environ = installation.make_secrets(var) | environ
    environ |= {"CELERY_SKIP_CHECKS": "1", "PYTHONUNBUFFERED": "1", "AMBER_VAR_DIR": str(var)}
    _check_settings(environ, knocks="bootstrap" in roles)
    bootstrap = Child(
        "bootstrap", argv["bootstrap"], environ, restarts=False, cwd=HERE, keeps=CREDENTIALS
    )
    if roles is ROLES:
        supervisor.say(_first_words(var))
    try:
        addresses = _start_servers(supervisor, var, environ)
        if roles is ROLES:  # a part starts no servers: it must not forget those of the whole
            installation.remember_addresses(var, addresses)
        environ |= addresses
        bootstrap.env = environ
        if "bootstrap" in roles and not _bootstrap(supervisor, bootstrap):
            return 0 if supervisor.stop_requests else 1
        environ.pop("AMBER_OWNER_DATABASE_URL", None)  # what answers requests never migrates
        if "web" in roles and process_count("web", environ) > 1:
            environ["PROMETHEUS_MULTIPROC_DIR"] = _empty_folder(var / "metrics")
        web_grace = _drain(environ) + grace_seconds
        graces = {"web": web_grace, "chat": grace_seconds, "ingest": INGEST_GRACE_SECONDS}
        for role in (role for role in roles if role in graces):
            grace = graces[role] + MARGIN_SECONDS
            for _ in range(1 if role == "web" else process_count(role, environ)):
                supervisor.start(Child(role, argv[role], environ, grace_seconds=grace, cwd=HERE))
        if "web" in roles and supervisor.wait_until(lambda: _is_healthy(environ)):
            supervisor.say(f"Amber is ready, after {time.monotonic() - began:.1f} seconds.")
            _show_credentials(supervisor, bootstrap)
            supervisor.say(_next_steps(environ, var))
            _build_docs(supervisor, environ)
        supervisor.watch()
        supervisor.say("Stopping. Press Ctrl-C again to stop without waiting for running turns.")
        return 0
    finally:
        _show_credentials(supervisor, bootstrap)  # also if the web never came: they are told once
        for names in STOP_ORDER:
            supervisor.stop(*names)


def _empty_folder(folder: Path) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return str(folder)


@contextlib.contextmanager
def postgres_for(command: str) -> Iterator[None]:
    """Run the embedded Postgres for backup and restore, which work while nothing else runs.

    Starts nothing where DATABASE_URL names a server, or while `up` runs on the same folder: its
    server is used then. Raises SystemExit with the reason if Postgres cannot be started.
    """
    if command not in STANDALONE or os.environ.get("DATABASE_URL"):
        yield
        return
    var = embedded.make_var(Path(os.environ["AMBER_VAR_DIR"]))
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_only_one(var / "up.lock"))
        except StartError:
            yield  # it runs, at the remembered address
            return
        try:
            server = embedded.prepare_postgres(var)
            log = stack.enter_context((var / "postgres.log").open("ab"))
            stack.enter_context(embedded.running(server, output=log))
        except embedded.EmbeddedError as error:
            sys.exit(str(error))
        os.environ["DATABASE_URL"] = server.url
        yield


def _start_servers(supervisor: Supervisor, var: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Start the servers that the environment does not name; return their addresses."""
    prepare = {"DATABASE_URL": embedded.prepare_postgres, "REDIS_URL": embedded.prepare_redis}
    needed = {name: make(var) for name, make in prepare.items() if not environ.get(name)}
    # The next start kills what is marked; leftover servers it asks to stop (`embedded`).
    plain = {name: value for name, value in environ.items() if name != MARK}
    waiting: list[tuple[Child, embedded.Server]] = []
    for server in needed.values():
        child = Child(
            server.name,
            server.argv,
            plain,
            stop_signal=server.stop_signal,
            grace_seconds=SERVER_GRACE_SECONDS,
            yields=False,
            orphaned=server.stop_signal,
            account=server.account,
            log=var / f"{server.name}.log",
            longest_pause_seconds=SERVER_PAUSE_SECONDS,
        )
        supervisor.start(child)
        waiting.append((child, server))
    supervisor.wait_until(
        lambda: all(c.process and c.is_alive and s.is_ready(c.process.pid) for c, s in waiting)
    )
    addresses = {name: server.url for name, server in needed.items()}
    if "DATABASE_URL" in addresses:
        addresses |= installation.addresses_of_roles(addresses["DATABASE_URL"])
    return addresses


def _bootstrap(supervisor: Supervisor, child: Child) -> bool:
    """Migrate and create the first rows; return False if that failed or a stop was asked for."""
    if not supervisor.stop_requests:
        supervisor.start(child)
        supervisor.wait_until(lambda: not child.is_alive)
    return child.process is not None and child.process.returncode == 0


def _build_docs(supervisor: Supervisor, environ: Mapping[str, str]) -> None:
    """Build the site at /docs/ beside what runs; ends at once if it is there already."""
    argv = [sys.executable, "-m", "amber.docs_site.build", "--yielding"]
    supervisor.start(Child("docs", argv, environ, grace_seconds=1, restarts=False, cwd=HERE))


@contextlib.contextmanager
def _only_one(lock: Path) -> Iterator[str]:
    """Hold the lock, end what a killed supervisor left, and yield the mark of Amber's processes.

    The kernel drops the lock when this process dies, however it dies. Raises StartError if another
    process holds it.
    """
    # Not `w`: who comes too late would erase the number of the process that holds it.
    with lock.open("a+") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.seek(0)
            raise StartError(
                f"Amber is already running on {lock.parent} (process {held.read().strip()})."
            ) from None
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        for pid in _marked_with(str(lock)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        yield str(lock)


def _marked_with(mark: str) -> list[int]:
    """Return the processes with this mark in their environment."""
    wanted = f"{MARK}={mark}"
    if Path("/proc/self/environ").exists():
        marked = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):  # another user's, or gone
                if wanted.encode() in environ.read_bytes().split(b"\0"):
                    marked.append(int(environ.parent.name))
        return marked
    ps = ["ps", "-axEww", "-o", "pid=", "-o", "command="]
    said = subprocess.run(ps, capture_output=True, text=True, check=False).stdout
    return [int(line.split()[0]) for line in said.splitlines() if wanted in line.split()]


def _check_settings(environ: Mapping[str, str], *, knocks: bool) -> None:
    """Let a child read all settings, before anything starts. Raises StartError with what it says."""
    argv = [sys.executable, "-m", "amber.setup.check", *(["--servers"] if knocks else [])]
    done = subprocess.run(
        argv, env={**environ}, cwd=HERE, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise StartError((done.stdout or done.stderr).strip())


def _check_port(host: str, port: int) -> None:
    """Raise StartError if another program listens there."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise StartError(f"AMBER_HOST={host!r}: must be an address of this machine.") from None
    family, kind, _, _, address = found[0]
    with socket.socket(family, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            raise StartError(
                f"Cannot listen on {host} port {port}: {error.strerror}. "
                "Stop the program that uses it, or choose another port: AMBER_PORT=8001 make run"
            ) from None


def _is_healthy(environ: Mapping[str, str]) -> bool:
    """Return whether /healthz answers 200. A bare socket: http.client would cost 6 MB for good."""
    host = _host(environ).replace("0.0.0.0", "127.0.0.1")
    try:
        with socket.create_connection((host, _port(environ)), timeout=2) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return connection.recv(64).split(b" ")[1:2] == [b"200"]
    except OSError:
        return False


def _first_words(var: Path) -> str:
    if (var / "postgres").exists():
        return "Starting."
    return "Starting for the first time: making a database, which takes some seconds."


def _show_credentials(supervisor: Supervisor, bootstrap: Child) -> None:
    """Print what the bootstrap made and nobody can look up later, in a box; once."""
    kept, bootstrap.kept = bootstrap.kept, []
    if not kept:
        return
    width = max(map(len, kept))
    edge = f"+{'-' * (width + 2)}+"
    supervisor.say("\n".join([edge, *(f"| {line:{width}} |" for line in kept), edge]))


def _next_steps(environ: Mapping[str, str], var: Path) -> str:
    here = f"http://{_host(environ).replace('0.0.0.0', '127.0.0.1')}:{_port(environ)}"
    return f"""1. Sign in and chat     {here}/
2. Name a model         {here}/admin/, or OPENAI_API_KEY in .env
3. Read on              {here}/docs/, and for the API /api/docs/
Ctrl-C stops everything; the next start finds it as it was, in {var}"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
