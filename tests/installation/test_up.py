"""`manage.py up` as people run it: real servers, web and workers in a folder of their own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from amber import embedded, installation, up
from amber.embedded import Server
from amber.processes import wait_until
from amber.supervisor import Child
from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import QUICK_LEASE
from tests.fixtures.ports import free_port

ROOT = Path(__file__).parents[2]
QUESTIONS = 4


@pytest.fixture
def home() -> Iterator[dict[str, str]]:
    """The environment of an installation that has nothing yet."""
    folder = Path(tempfile.mkdtemp(prefix="amber-up-"))
    folder.chmod(0o711)
    port = free_port()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AMBER_")}
    for name in ("DATABASE_URL", "REDIS_URL", "OPENAI_API_KEY", "DJANGO_SETTINGS_MODULE"):
        environ.pop(name, None)
    environ |= {"AMBER_VAR_DIR": str(folder / "var"), "AMBER_PORT": str(port), **QUICK_LEASE}
    yield environ | {"AMBER_SHUTDOWN_GRACE_SECONDS": "1"}
    shutil.rmtree(folder, ignore_errors=True)


class Up:
    """A running `manage.py up`."""

    def __init__(self, environ: dict[str, str], log: Path) -> None:
        self.log = log
        self.url = f"http://127.0.0.1:{environ['AMBER_PORT']}"
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=ROOT,
                env=environ,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()

    def wait_for(self, text: str) -> None:
        def is_there() -> bool:
            assert self.process.poll() is None or text in self.said, self.said
            return text in self.said

        assert wait_until(is_there, timeout_seconds=120), self.said

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def children(self) -> dict[str, int]:
        """Process ids by what they are; Linux only."""
        pids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        found = {}
        for pid in map(int, pids.split()):
            line = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            for name in ("postgres", "redis-server", "uvicorn", "worker chat", "worker ingest"):
                if name in line.replace(str(ROOT), "").replace("manage.py", ""):
                    found[name] = pid
                    break
        return found


def manage(
    environ: dict[str, str], *arguments: str, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environ,
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def account(environ: dict[str, str]) -> Any:
    named = ("--email", "eve@example.com", "--password-stdin")
    done = manage(environ, "create_account", *named, typed="x" * 12)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def asker(environ: dict[str, str]) -> Client:
    """Somebody with a key, whom the built-in offline model answers."""
    unset = {"DATABASE_URL": "", "REDIS_URL": ""}  # as a copied .env has them: no address is given
    done = manage(environ | unset, "create_account", "--email", "ida@example.com", "--api-key")
    assert done.returncode == 0, done.stderr
    return Client(int(environ["AMBER_PORT"]), json.loads(done.stdout)["api_key"])


def check_that_what_was_accepted_outlives_postgres(running: Up, ida: Client) -> None:
    """It is killed right after the last 201, when earlier questions are being answered, and each of
    them is answered once."""
    assistant = ida.post("assistants/", {"name": "Ida's"}).body["id"]
    chats = [ida.post("chats/", {"assistant_id": assistant}).body["id"] for _ in range(QUESTIONS)]
    asked = [ida.ask(f"Question {n}?", chat_id=chat_id) for n, chat_id in enumerate(chats)]
    os.kill(running.children()["postgres"], signal.SIGKILL)
    running.wait_for("postgres ended with status -9 and will be restarted.")
    assert wait_until(
        lambda: ida.get("/readyz", is_checked=False).status == 200, timeout_seconds=60
    )
    for number, each in enumerate(asked):
        assert ida.ended(each.turn_id)["status"] == "completed"
        question, *answers = ida.messages(each.chat_id, all_branches=True)
        assert (question["id"], question["content"]) == (each.message_id, f"Question {number}?")
        assert [answer["role"] for answer in answers] == ["assistant"]


def is_gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_survives_every_death_and_finds_everything_again(home, tmp_path):
    with Up(home, tmp_path / "one") as one:
        one.wait_for("Amber is ready")
        one.wait_for("Ctrl-C stops everything")
        box = one.said.partition("Amber is ready")[2].splitlines()[1:6]
        assert [line[12:13] for line in box] == ["+", "|", "|", "|", "+"]
        assert "Password, shown only once" in box[2]
        assert "API key of Demo, shown only once" in box[3]
        assert not any(word in one.said for word in ("WARNING", "LOG:", "redis     |", "{"))
        children = one.children()
        assert set(children) == {
            "postgres",
            "redis-server",
            "uvicorn",
            "worker chat",
            "worker ingest",
        }

        second = manage(home, "up")
        assert second.returncode == 1
        assert f"Amber is already running on {home['AMBER_VAR_DIR']}" in second.stdout

        eve = account(home)
        check_that_what_was_accepted_outlives_postgres(one, asker(home))
        children = one.children()
        for name in ("uvicorn", "worker chat", "redis-server", "postgres"):
            os.kill(children[name], signal.SIGKILL)
        for name in ("web", "chat", "redis", "postgres"):
            one.wait_for(f"{name} ended with status -9 and will be restarted.")
        assert wait_until(one.is_healthy, timeout_seconds=60)
        assert wait_until(lambda: len(one.children()) == 5, timeout_seconds=60)
        children = one.children()
        one.process.kill()
    assert wait_until(lambda: all(map(is_gone, children.values())), timeout_seconds=60)

    with Up(home, tmp_path / "two") as two:
        two.wait_for("Amber is ready")
        assert "shown only once" not in two.said
        assert account(home) == eve
        children = two.children()
        two.process.send_signal(signal.SIGINT)
        assert two.process.wait(60) == 0, two.said
    assert all(map(is_gone, children.values()))
    assert "was killed" not in two.said
    var = Path(home["AMBER_VAR_DIR"])
    assert "Redis is now ready to exit" in (var / "redis.log").read_text()
    assert "received fast shutdown" in (var / "postgres.log").read_text()


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_two_of_each_serve_one_address_and_count_together(home, tmp_path):
    two_of_each = {"AMBER_WEB_PROCESSES": "2", "AMBER_CHAT_WORKERS": "2"}
    with Up(home | two_of_each, tmp_path / "log") as running:
        running.wait_for("Amber is ready")
        assert "Duplicate" not in running.said, "Celery tells its workers apart"
        ida = asker(home)
        assistant = ida.post("assistants/", {"name": "Ida's"}).body["id"]
        turns = [
            ida.ask(
                f"Question {n}?", chat_id=ida.post("chats/", {"assistant_id": assistant}).body["id"]
            )
            for n in range(QUESTIONS)
        ]
        assert all(ida.ended(turn.turn_id)["status"] == "completed" for turn in turns)
        workers = web_processes(running.children()["uvicorn"])
        assert len(workers) == 2

        before = counted_requests(running.url)
        for _ in range(20):
            assert running.is_healthy()
        assert counted_requests(running.url) == before + 21  # and the scrape before

        os.kill(workers[0], signal.SIGKILL)
        assert wait_until(
            lambda: workers[0] not in web_processes(running.children()["uvicorn"]),
            timeout_seconds=60,
        )
        assert wait_until(
            lambda: len(web_processes(running.children()["uvicorn"])) == 2, timeout_seconds=60
        )
        assert wait_until(running.is_healthy, timeout_seconds=60)


def web_processes(parent: int) -> list[int]:
    """Return the processes below this one that serve, without the tracker of Python's own."""
    pids = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in pids if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def counted_requests(url: str) -> int:
    with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    (counted,) = (
        line
        for line in lines
        if line.startswith('amber_http_requests_total{method="GET",status="200"}')
    )
    return int(float(counted.rpartition(" ")[2]))


@pytest.mark.parametrize(
    ("cores", "memory_mb", "counts"),
    [
        (1, 500, (1, 1)),
        (2, 24_000, (1, 1)),
        (4, 16_000, (2, 1)),
        (8, 16_000, (4, 2)),
        (8, 3_000, (3, 2)),
        (64, 256_000, (4, 4)),
    ],
)
def test_starts_as_many_as_cores_and_memory_allow(monkeypatch, cores, memory_mb, counts):
    monkeypatch.setattr(up, "_cores", lambda: cores)
    monkeypatch.setattr(up, "_memory_mb", lambda: memory_mb)
    assert tuple(up.process_count(role, {}) for role in ("chat", "web")) == counts
    assert up.process_count("chat", {"AMBER_CHAT_WORKERS": "7"}) == 7
    assert up.process_count("ingest", {}) == 1


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_backs_up_while_it_runs_and_restores_into_a_new_folder(home, tmp_path):
    """The embedded Postgres is started for a restore, which a running Amber refuses."""
    with Up(home, tmp_path / "one") as one:
        one.wait_for("Amber is ready")
        eve = account(home)
        made = manage(home, "backup")
        assert made.returncode == 0, made.stderr
        backups = Path(home["AMBER_VAR_DIR"]) / "backups"
        pair = [str(next(backups.glob(f"*{kind}"))) for kind in (".dump", ".files.tar")]
        refused = manage(home, "restore", *pair)
        assert refused.returncode == 1
        assert "amber chat worker" in refused.stderr
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(60) == 0, one.said

    new = Path(home["AMBER_VAR_DIR"]).parent / "new"
    new.mkdir(mode=0o711)
    shutil.copy(Path(home["AMBER_VAR_DIR"]) / "secrets.env", new)
    elsewhere = home | {"AMBER_VAR_DIR": str(new)}
    done = manage(elsewhere, "restore", *pair)
    assert done.returncode == 0, done.stderr
    with Up(elsewhere, tmp_path / "two") as two:
        two.wait_for("Amber is ready")
        assert "shown only once" not in two.said
        assert account(elsewhere) == eve


def test_servers_are_not_waited_for_as_long_as_other_children(monkeypatch, tmp_path):
    started: list[Child] = []
    supervisor: Any = SimpleNamespace(start=started.append, wait_until=lambda _: True)
    for name in ("postgres", "redis"):
        server = Server(name, [name], f"{name}://", signal.SIGTERM, lambda _: True)
        monkeypatch.setattr(embedded, f"prepare_{name}", lambda _, server=server: server)

    up._start_servers(supervisor, tmp_path, {})

    assert [child.name for child in started] == ["postgres", "redis"]
    assert {child.longest_pause_seconds for child in started} == {up.SERVER_PAUSE_SECONDS}


def test_says_that_the_port_is_taken(home):
    with socket.create_server(("127.0.0.1", int(home["AMBER_PORT"]))):
        done = manage(home, "up")
    assert done.returncode == 1
    assert f"Cannot listen on 127.0.0.1 port {home['AMBER_PORT']}" in done.stdout


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("AMBER_PORT", "http"),
        ("AMBER_SHUTDOWN_GRACE_SECONDS", "soon"),
        ("AMBER_WEB_PROCESSES", "many"),
        ("AMBER_INGEST_CONCURRENCY", "two"),
        ("AMBER_HOST", "no.such.host.invalid"),
        ("AMBER_LOG_FORMAT", "xml"),
        ("AMBER_PUBLIC_URL", "amber.example.com"),
        ("AMBER_ADMIN_EMAIL", "root"),
        ("AMBER_ALLOWED_HOSTS", "https://amber.example.com"),
    ],
)
def test_says_which_setting_is_wrong(home, setting, value):
    check_that_one_sentence_is_all(home, {setting: value}, f"{setting}='{value}'")


def test_says_which_host_of_services_is_wrong(home):
    wrong = {"AMBER_TOOL_ALLOWED_HOSTS": "http://searxng:8080"}
    check_that_one_sentence_is_all(home, wrong, "AMBER_TOOL_ALLOWED_HOSTS: 'http://searxng:8080'")


SECRET = "geheim"
HIDDEN = {
    "DATABASE_URL": f"postgresql://amber:{SECRET}@127.0.0.1:none/amber",
    "REDIS_URL": f"http://:{SECRET}@127.0.0.1",
    "AMBER_SMTP_URL": f"smtp://me:{SECRET}@mail:port",
    "AMBER_SECRET_KEYS": SECRET,
    "AMBER_BOOTSTRAP_API_KEY": SECRET,
}
ABSENT = {
    "DATABASE_URL": f"postgresql://amber:{SECRET}@127.0.0.1:1/amber",
    "REDIS_URL": f"redis://:{SECRET}@127.0.0.1:1/0",
}


@pytest.mark.parametrize("setting", HIDDEN)
def test_says_which_secret_is_wrong_and_never_shows_it(home, setting):
    check_that_one_sentence_is_all(home, {setting: HIDDEN[setting]}, setting)


@pytest.mark.parametrize("setting", ABSENT)
def test_says_which_server_cannot_be_reached(home, setting):
    check_that_one_sentence_is_all(home, {setting: ABSENT[setting]}, f"{setting} names a ")


def check_that_one_sentence_is_all(home: dict[str, str], wrong: dict[str, str], said: str) -> None:
    done = manage(home | wrong, "up")
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert said in line
    assert SECRET not in line
    assert done.stderr == ""
    assert not (Path(home["AMBER_VAR_DIR"]) / "postgres").exists(), "nothing was started"


def test_runs_a_part_only_beside_servers_that_others_share(home):
    done = manage(home, "up", "web")
    assert done.returncode == 1
    assert "DATABASE_URL and REDIS_URL" in done.stdout


def test_a_part_leaves_alone_what_the_whole_remembers(home):
    """The servers that it names are its own affair; other commands go on with those of the
    whole."""
    var = Path(home["AMBER_VAR_DIR"])
    var.mkdir(parents=True)
    whole = {"DATABASE_URL": "postgresql://amber@/amber?host=/whole", "REDIS_URL": "redis://whole"}
    installation.remember_addresses(var, whole)
    nowhere = {"DATABASE_URL": "postgresql://amber@127.0.0.1:1/amber", "REDIS_URL": "redis://none"}
    assert manage(home | nowhere, "up", "bootstrap").returncode == 1
    remembered = installation.read_kept(var)
    assert {name: remembered[name] for name in whole} == whole


def test_says_which_parts_there_are(home):
    done = manage(home, "up", "beat")
    assert done.returncode == 1
    assert "Unknown: beat. The roles are bootstrap, web, chat, ingest." in done.stdout


def test_knows_what_a_killed_supervisor_left_by_its_mark(tmp_path):
    mark = str(tmp_path / "up.lock")
    ours = subprocess.Popen(["sleep", "60"], env={up.MARK: mark})
    other = subprocess.Popen(["sleep", "60"], env={up.MARK: f"{mark}2"})
    try:
        with up._only_one(tmp_path / "up.lock"):
            assert ours.wait(10) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()


def test_makes_secrets_once(tmp_path):
    made = installation.make_secrets(tmp_path)
    assert installation.make_secrets(tmp_path) == made
    assert set(made) == {"AMBER_SECRET_KEY", "AMBER_SECRET_KEYS"}
    assert (tmp_path / "secrets.env").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.env"]


def test_remembers_secrets_and_addresses_for_other_terminals(tmp_path):
    assert installation.read_kept(tmp_path) == {}
    made = installation.make_secrets(tmp_path)
    address = {"DATABASE_URL": "postgresql://amber@/amber?host=/a%20folder/x"}
    installation.remember_addresses(tmp_path, address)
    assert installation.read_kept(tmp_path) == made | address
