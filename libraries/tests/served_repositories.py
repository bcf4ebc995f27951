"""Serve Git repositories over TLS, and import them as a worker does."""

import ssl
from dataclasses import replace
from typing import Any

import pytest

from amber.lib.tests.egress.guarded_client import guarded
from amber.lib.tests.egress.test_fetch_egress import certificate_for
from amber.lib.workers.worker import Worker
from libraries.git import importing
from libraries.models import Document, Repository
from libraries.tests.git_server import GitServer
from libraries.tests.git_server import Repository as GitRepository
from libraries.tests.ledger import ALL, ingest
from tests.fixtures.personas import Persona, api

FILES = {
    "README.md": "# Pumps\n\nThe pump P-102 is blue.",
    "docs/valve.md": "# Valves\n\nThe valve turns left.",
    "src/pump.py": "def pump():\n    return 'P-102'\n",
}


@pytest.fixture
def source(tmp_path):
    made = GitRepository(tmp_path / "served" / "pumps.git")
    made.commit(FILES)
    return made


@pytest.fixture
def certificate(tmp_path):
    return certificate_for("tls.test", tmp_path)


@pytest.fixture
def allowed(monkeypatch, certificate):
    """The server of these tests, under its name."""
    trusting = ssl.create_default_context(cafile=str(certificate))
    policy = replace(guarded(allow=["tls.test"]), ssl_context=trusting)
    monkeypatch.setattr("amber.lib.egress._policy_allowing", lambda _: policy)


@pytest.fixture
def server(source, certificate, allowed):
    with GitServer(certificate, {"pumps.git": source}) as running:
        yield running


def ask(persona: Persona, library: Any, url: str, **more: Any) -> Any:
    return api(persona).post(f"{ALL}{library.pk}/import/", {"git_url": url, **more})


def claimed(worker: str = "w1") -> Any:
    return importing.claim(Worker(worker))


def work() -> Any:
    """A worker imports what waits; the one repository as it is then."""
    while (repository := claimed()) is not None:
        importing.run(repository)
    return Repository.objects.order_by("-updated_at").first()


def imported(persona: Persona, library: Any, url: str, **more: Any) -> Any:
    answer = ask(persona, library, url, **more)
    assert answer.status_code == 202, answer.content
    return work()


def texts(library: Any) -> dict[str, str]:
    ingest()
    return dict(Document.objects.filter(library=library).values_list("path", "text"))
