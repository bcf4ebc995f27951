"""How long a test may take before it counts as hanging; a pytest plugin.

The limits are generous: they turn an hour of silence into a failure that shows where each thread
stood, and say nothing about speed. Each is a marker, so that a test may have its own.
"""

import pytest

E2E_SECONDS = 600
"""The first of them starts a platform, and waits in turn for each of its processes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("e2e") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(E2E_SECONDS))
