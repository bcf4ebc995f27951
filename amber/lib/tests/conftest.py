"""Local servers that count who connects."""

from collections.abc import Iterator

import pytest

from amber.lib.tests.local_server import LocalServer


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer() as running:
        yield running


@pytest.fixture
def other() -> Iterator[LocalServer]:
    with LocalServer() as running:
        yield running
