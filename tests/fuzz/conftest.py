"""Nothing is collected here unless FUZZ_SECONDS is set: `make test-fuzz` does it."""

import os

from tests.fixtures.provider import fake_provider

__all__ = ["fake_provider"]

collect_ignore_glob = [] if os.environ.get("FUZZ_SECONDS") else ["test_*.py"]
