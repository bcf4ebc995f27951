"""The platform of the end-to-end tests, its people, and a look at its log after each test."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.client import Client
from tests.e2e.platform import Platform, drop_database, own_database
from tests.fixtures_provider import RunningProvider, fake_provider

__all__ = ["fake_provider"]


@pytest.fixture(scope="session")
def running_platform(fake_provider: RunningProvider) -> Iterator[Platform]:
    home = Path(tempfile.mkdtemp(prefix="amber-e2e-"))
    name = f"amber_e2e_{secrets.token_hex(4)}"
    server_url = os.environ["DATABASE_URL"]
    address = own_database(server_url, name)
    platform = Platform(home, provider_url=fake_provider.base_url, database_url=address)
    try:
        platform.start()
        yield platform
    finally:
        platform.stop()
        drop_database(server_url, name)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def platform(running_platform: Platform) -> Iterator[Platform]:
    """Whole at the start of each test; whatever was broken in it, no process may leave a trace."""
    running_platform.restore()
    before = running_platform.log.stat().st_size
    yield running_platform
    with running_platform.log.open("rb") as log:
        log.seek(before)
        said = log.read().decode(errors="replace")
    assert "Traceback" not in said, said


@pytest.fixture(scope="session")
def ann(running_platform: Platform) -> Client:
    return running_platform.new_person("ann", "Acme")


@pytest.fixture(scope="session")
def rob(running_platform: Platform) -> Client:
    """Of another organization."""
    return running_platform.new_person("rob", "Rival")
