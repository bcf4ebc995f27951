"""Commands of an operator that run in a copy of a process: what fails there fails the test."""

import pytest

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
