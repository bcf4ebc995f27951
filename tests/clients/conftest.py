"""Other people's clients, each with an installation of its own under var/clients. Nothing is
collected here unless CLIENTS is set: `make test-clients` does it, and installs them."""

import os

from tests.e2e.conftest import ann, fake_provider, running_platform

__all__ = ["ann", "fake_provider", "running_platform"]

collect_ignore_glob = [] if os.environ.get("CLIENTS") else ["test_*.py"]
