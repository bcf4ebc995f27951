"""Give the tests of the wall their database."""

from collections.abc import Iterator

import pytest

from tests.wall.database import WalledDatabase, walled_database


@pytest.fixture(scope="module")
def walled() -> Iterator[WalledDatabase]:
    with walled_database() as made:
        yield made
