"""Postgres and Redis for one test run, thrown away after it: a pytest plugin.

Starts both, without fsync and only where this run can reach them, unless DATABASE_URL or
REDIS_URL are set, and puts their addresses, and secrets, into the environment before Django
reads its settings. With xdist the controller starts them once; each worker gets its own test
database (pytest-django's doing) and its own Redis database.

The root conftest loads it. That is too late where pytest's configuration names
DJANGO_SETTINGS_MODULE, because pytest-django reads the settings first: then run
`python -m pytest -p tests.services`. Any other command: `python -m tests.services COMMAND …`.
"""

import atexit
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from amber import embedded, installation


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Reached when loaded with -p: before pytest-django reads the settings."""
    start()


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Reached when loaded by the root conftest."""
    start()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: list[Any]) -> None:
    """Give each xdist worker its own Redis database, from 1: they inherit the rest."""
    for number, spec in enumerate(specs, start=1):
        spec.env["REDIS_URL"] = redis_url_of_worker(os.environ["REDIS_URL"], number)


def redis_url_of_worker(url: str, number: int) -> str:
    """The same server, another database. Note that Redis' channels know no databases."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{number}"))


def start() -> None:
    """Start what the environment does not name. A second call finds it named."""
    os.environ.setdefault(
        "AMBER_QUEUE_SECONDS", "0"
    )  # no look at the queue between counted statements
    if "AMBER_VAR_DIR" not in os.environ:
        var = Path(tempfile.mkdtemp(prefix="amber-tests-"))
        var.chmod(0o711)
        os.environ["AMBER_VAR_DIR"] = str(var)
        atexit.register(shutil.rmtree, var, ignore_errors=True)
    var = embedded.make_var(Path(os.environ["AMBER_VAR_DIR"]))
    for name, secret in installation.make_secrets(var).items():
        os.environ.setdefault(name, secret)
    servers = contextlib.ExitStack()
    atexit.register(servers.close)  # also after Ctrl-C; should this process be killed, they end too
    for variable, prepare in (
        ("DATABASE_URL", embedded.prepare_postgres),
        ("REDIS_URL", embedded.prepare_redis),
    ):
        if not os.environ.get(variable):
            server = prepare(var, durable=False)
            log = servers.enter_context((var / f"{server.name}.log").open("wb"))
            servers.enter_context(embedded.running(server, output=log))
            os.environ[variable] = server.url


if __name__ == "__main__":
    start()
    sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))
