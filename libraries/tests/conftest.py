"""Give each test a folder of its own for files, a library, and a local server with files to fetch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amber.lib.tests.local_server import LocalServer
from libraries.tests.ledger import new_library
from tests.fixtures.personas import Persona


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Callable[[], list[Path]]:
    """Lists the files in the storage."""
    root = tmp_path / "files"
    settings.MEDIA_ROOT = root
    return lambda: [path for path in root.rglob("*") if path.is_file()]


@pytest.fixture
def server(settings: Any) -> Iterator[LocalServer]:
    """One that the operator allows."""
    with LocalServer() as running:
        settings.AMBER_TOOL_ALLOWED_HOSTS = (f"127.0.0.1:{running.port}",)
        yield running


@pytest.fixture
def library(bob: Persona) -> Any:
    return new_library(bob)
