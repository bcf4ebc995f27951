"""A repository, served over TLS, that imports may reach."""

import ssl
from dataclasses import replace

import pytest

from amber.lib.tests.egress.guarded_client import guarded
from amber.lib.tests.egress.test_fetch_egress import certificate_for
from libraries.tests.enqueued import enqueued
from libraries.tests.git.served_repositories import FILES
from libraries.tests.git_server import GitServer
from libraries.tests.git_server import Repository as GitRepository

__all__ = ["enqueued"]


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
