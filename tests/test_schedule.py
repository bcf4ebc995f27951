"""A test that hangs is a failure that shows all threads, and the next test runs all the same.
What waits comes first."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.schedule import E2E_SECONDS, put_waiting_first, pytest_collection_modifyitems

CONFIGURATION = Path(__file__).parent.parent / "pyproject.toml"
HANGS = """
import threading

def wait_for_ever():
    threading.Event().wait()

def test_hangs():
    thread = threading.Thread(target=wait_for_ever, daemon=True)
    thread.start()
    thread.join()

def test_next():
    pass
"""


def test_a_test_that_hangs_fails_and_shows_its_threads(tmp_path):
    script = tmp_path / "test_hangs.py"
    script.write_text(HANGS)
    argv = [sys.executable, "-m", "pytest", str(script), "--rootdir", str(tmp_path), "-c"]
    argv += [str(CONFIGURATION), "-o", "timeout=1", "-p", "no:django", "-p", "no:cacheprovider"]
    done = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert "1 failed, 1 passed" in done.stdout
    assert "Failed: Timeout (>1.0s)" in done.stdout
    assert "in wait_for_ever" in done.stdout + done.stderr


def test_every_test_has_a_limit_and_those_of_processes_a_longer_one(request):
    assert float(request.config.getini("timeout")) < E2E_SECONDS
    request.node.add_marker("e2e")
    pytest_collection_modifyitems(request.config, [request.node])
    assert request.node.get_closest_marker("timeout").args == (E2E_SECONDS,)


def test_a_limit_of_its_own_remains(request):
    for marker in (pytest.mark.e2e, pytest.mark.timeout(5)):
        request.node.add_marker(marker)
    pytest_collection_modifyitems(request.config, [request.node])
    assert [marker.args for marker in request.node.iter_markers("timeout")] == [(5,)]


def test_what_waits_comes_first_in_two_workers_and_the_order_remains(request):
    def item(name: str) -> pytest.Function:
        made = pytest.Function.from_parent(request.node.parent, name=name, callobj=lambda: None)
        assert isinstance(made, pytest.Function)
        return made

    made = {name: item(name) for name in "abcdefghi"}
    for name in "bdfh":
        made[name].add_marker("e2e")
    for name in "fh":
        made[name].fixturenames = [*made[name].fixturenames, "browser"]
    items: list[pytest.Item] = list(made.values())
    put_waiting_first(items, workers=3)
    assert "".join(each.name for each in items) == "bda" + "fhc" + "egi"
    few: list[pytest.Item] = [made[name] for name in "abdf"]
    put_waiting_first(few, workers=4)
    assert "".join(each.name for each in few) == "bdfa"
