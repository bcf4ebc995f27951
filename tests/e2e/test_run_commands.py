"""Commands of an operator that run in a copy of a process: what fails there fails the test."""

import os
import select
import subprocess
from pathlib import Path

import pytest

from tests.e2e.kit.copies import Copy, Loaded
from tests.e2e.kit.platform import AS_OWNER, PATIENCE_SECONDS

pytestmark = pytest.mark.e2e

ACCOUNT = ("manage.py", "create_account", "--email", "iris@example.com")


def test_each_prints_for_itself_and_reads_what_is_typed(platform):
    first = platform.command(*ACCOUNT, "--password-stdin", typed="correct horse battery staple\n")
    assert platform.command(*ACCOUNT) == first


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ((*ACCOUNT, "--password-stdin"), "The password is empty"),
        (("manage.py", "create_account"), "required: --email"),
        (("-m", "tests.e2e.nothing_here"), "No module named"),
    ],
)
def test_what_fails_says_why(platform, command, told):
    with pytest.raises(AssertionError, match=told):
        platform.command(*command)


@pytest.fixture
def loaded(platform):
    made = Loaded(platform.environ | AS_OWNER)
    yield made
    made.close()


def waiting_copy(loaded: Loaded) -> Copy:
    with Path(os.devnull).open("r+b") as nothing:
        return loaded.start(
            ["-m", "timeit", "-n1", "-r1", "import time; time.sleep(600)"], *[nothing] * 3
        )


def test_a_copy_that_is_killed_is_told_as_any_process(loaded):
    copy = waiting_copy(loaded)
    with pytest.raises(subprocess.TimeoutExpired):
        copy.wait(0.1)
    assert copy.poll() is None
    copy.kill()
    assert copy.wait(PATIENCE_SECONDS) == copy.returncode == -9


def test_no_copy_outlives_what_it_was_copied_of(loaded):
    copy = waiting_copy(loaded)
    alive = os.pidfd_open(copy.pid)
    try:
        assert not select.select([alive], [], [], 0.1)[0]
        loaded.process.kill()
        assert select.select([alive], [], [], PATIENCE_SECONDS)[0]
    finally:
        os.close(alive)
    assert copy.wait(PATIENCE_SECONDS) == -9
