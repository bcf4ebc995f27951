"""The supervisor runs in a process of its own: it takes over signals and ends its children."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from amber.processes import wait_until

ROOT = Path(__file__).parents[2]

HEAD = """
import os, signal, sys, time
from amber.supervisor import Child, Supervisor

def shell(name, script, **how):
    return Child(name, ["sh", "-c", script], dict(os.environ), **how)

supervisor = Supervisor(sys.stdout.buffer)
"""
# Says when it is asked to stop, and takes a moment.
OBEDIENT = (
    "trap 'echo asked; sleep 0.3; echo done; exit 0' TERM; echo up $$; while :; do sleep 0.05; done"
)
STUBBORN = "trap '' TERM; echo up $$; while :; do sleep 0.05; done"


class Run:
    """A script around a Supervisor, and what it printed so far."""

    def __init__(self, folder: Path, script: str, names: Sequence[str]) -> None:
        self._output = folder / "output"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", HEAD + script],
                stdout=output,
                stderr=output,
                cwd=ROOT,
                start_new_session=True,
            )
        for name in names:
            self.wait_for(f"{name:9} | up")

    @property
    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    def wait_for(self, text: str, *, times: int = 1) -> None:
        def said() -> bool:
            assert self.process.poll() is None or self.count(text) >= times, self.lines
            return self.count(text) >= times

        assert wait_until(said, timeout_seconds=30), self.lines

    def count(self, text: str) -> int:
        return sum(text in line for line in self.lines)

    def pids(self, name: str) -> list[int]:
        """Of the child, one for each time it was started."""
        return [int(line.split()[-1]) for line in self.lines if line.startswith(f"{name:9} | up")]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[type]:
    started: list[Run] = []

    def start(script: str, *names: str) -> Run:
        started.append(Run(tmp_path, script, names))
        return started[-1]

    yield start  # type: ignore[misc]
    for one in started:
        one.process.kill()
        one.process.wait()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_starts_again_what_dies(run):
    one = run(f'supervisor.start(shell("web", "{OBEDIENT}")); supervisor.watch()', "web")

    os.kill(one.pids("web")[0], signal.SIGKILL)

    one.wait_for("web       | up", times=2)
    assert one.count("web ended with status -9 and will be restarted.") == 1


def test_waits_longer_each_time_when_a_child_cannot_start(run):
    began = time.monotonic()
    one = run('supervisor.start(shell("web", "echo tried; exit 3")); supervisor.watch()')

    one.wait_for("tried", times=4)

    assert time.monotonic() - began >= 0.5 + 1 + 2


def test_servers_that_keep_dying_are_started_again_soon(run):
    """Pauses that double would add up to 90 s."""
    child = 'shell("redis", "echo tried; exit 3", longest_pause_seconds=0.1)'
    one = run(f"supervisor.start({child}); supervisor.watch()")

    one.wait_for("tried", times=9)


def test_stops_one_after_the_other_each_asked_once(run):
    script = f"""
for name in ("redis", "chat", "web"):
    supervisor.start(shell(name, "{OBEDIENT}"))
supervisor.watch()
for name in ("web", "chat", "redis"):
    supervisor.stop(name)
"""
    one = run(script, "web", "chat", "redis")

    os.killpg(one.process.pid, signal.SIGINT)  # as Ctrl-C in a terminal does

    assert one.process.wait(30) == 0
    assert [line for line in one.lines if "up" not in line] == [
        f"{name:9} | {said}" for name in ("web", "chat", "redis") for said in ("asked", "done")
    ]


def test_kills_what_outlasts_its_grace_with_all_it_started(run):
    script = f"""
supervisor.start(shell("chat", "sh -c \\"{STUBBORN}\\" & {STUBBORN}", grace_seconds=0.5))
supervisor.watch()
supervisor.stop("chat")
"""
    one = run(script)
    one.wait_for("chat      | up", times=2)

    one.process.terminate()

    assert one.process.wait(30) == 0
    assert one.count("chat did not stop in time and was killed.") == 1
    assert wait_until(lambda: all(map(is_gone, one.pids("chat"))), timeout_seconds=10)


def test_a_second_ctrl_c_ends_the_patience_with_workers_but_not_with_servers(run):
    script = f"""
supervisor.start(shell("postgres", "{OBEDIENT}", yields=False))
supervisor.start(shell("chat", "{STUBBORN}"))
supervisor.watch()
supervisor.say("stopping")
supervisor.stop("chat")
supervisor.stop("postgres")
"""
    one = run(script, "postgres", "chat")

    one.process.send_signal(signal.SIGINT)
    one.wait_for("stopping")
    one.process.send_signal(signal.SIGINT)

    assert one.process.wait(30) == 0
    assert one.count("chat did not stop in time and was killed.") == 1
    assert one.count("postgres  | done") == 1


def test_prints_lines_whole_and_the_last_one_too(run):
    script = """
child = shell("web", "printf 'a b'; sleep 0.2; printf 'c\\\\nlast'", restarts=False)
supervisor.start(child)
supervisor.wait_until(lambda: not child.is_alive)
supervisor.tick(0.5)
"""
    one = run(script)

    assert one.process.wait(30) == 0
    assert one.lines == ["web       | a bc", "web       | last"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start cleans up")
def test_children_end_with_a_supervisor_that_is_killed(run):
    one = run(f'supervisor.start(shell("web", "{STUBBORN}")); supervisor.watch()', "web")

    one.process.kill()

    assert wait_until(lambda: all(map(is_gone, one.pids("web"))), timeout_seconds=10)


def test_a_childs_log_is_a_file_and_chosen_lines_are_kept_for_later(tmp_path):
    script = f"""
from pathlib import Path
log = Path({str(tmp_path)!r}) / "server.log"
log.write_bytes(b"x" * 10_000_001)
server = shell("server", "echo quiet; exit 3", restarts=False, log=log)
teller = shell("teller", "echo Password: p; echo up; sleep 0.2", restarts=False, keeps=("Password: ",))
for child in (server, teller):
    supervisor.start(child)
supervisor.wait_until(lambda: not server.is_alive and not teller.is_alive)
supervisor.tick(0)
supervisor.say(f"kept {{teller.kept}}")
"""
    run = Run(tmp_path, script, ["teller"])
    run.process.wait(30)
    assert run.count("kept ['Password: p']") == 1
    assert run.count("teller    | Password") == run.count("quiet") == 0
    assert (tmp_path / "server.log").read_text() == "quiet\n"
    assert (tmp_path / "server.log.1").stat().st_size > 10_000_000
