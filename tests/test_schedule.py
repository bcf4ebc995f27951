"""A test that hangs is a failure that shows all threads, and the next test runs all the same.
What is slow comes first."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import schedule
from tests.schedule import E2E_SECONDS, SECONDS, put_slow_first, pytest_collection_modifyitems

ROOT = Path(__file__).parent.parent
CONFIGURATION = ROOT / "pyproject.toml"
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


def test_slow_modules_come_first_in_shares_and_the_order_remains(monkeypatch):
    monkeypatch.setattr(schedule, "SECONDS", {"test_d": 5, "test_c": 50, "test_e": 20, "test_a": 1})

    def item(name: str) -> Any:
        marks = {"e2e"} if name[0] in "cde" else set()
        return SimpleNamespace(
            name=name,
            nodeid=f"tests/test_{name[0]}.py::{name}",
            get_closest_marker=lambda mark: mark if mark in marks else None,
        )

    def ordered(names: str, workers: int) -> str:
        items = [item(name) for name in names.split()]
        put_slow_first(items, workers=workers)
        return " ".join(each.name for each in items)

    names = "a1 a2 b1 b2 b3 b4 b5 b6 c1 c2 d1 d2 e1 f1 f2 f3"
    # Four for each: two begin with what waits, one with what computes for long.
    assert ordered(names, 4) == "c1 c2 b1 b2 e1 d1 d2 b3 a1 a2 b4 b5 b6 f1 f2 f3"
    assert ordered(names, 1) == "c1 c2 e1 d1 d2 a1 a2 b1 b2 b3 b4 b5 b6 f1 f2 f3"
    assert ordered("c1 c2 c3 b1 a1", 2) == "c1 c2 c3 a1 b1"


def test_the_slow_modules_are_there():
    there = {path.stem for path in ROOT.glob("[a-z]*/**/test_*.py")}
    assert not set(SECONDS) - there
