"""Which tests come first and how long one may take; a pytest plugin.

The limits are generous: they turn an hour of silence into a failure that shows where each thread
stood, and say nothing about speed. Each is a marker, so that a test may have its own.
"""

import hypothesis
import pytest

E2E_SECONDS = 600
"""The first of them starts a platform, and waits in turn for each of its processes."""


# Hypothesis' own limit of 200 ms an example would be one on speed; it has none where CI is set.
hypothesis.settings.register_profile("patient", hypothesis.settings.default, deadline=None)
hypothesis.settings.load_profile("patient")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if is_e2e(item) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(E2E_SECONDS))
    if hasattr(config, "workerinput"):
        put_waiting_first(items)


def put_waiting_first(items: list[pytest.Item]) -> None:
    """End-to-end tests before all others, for xdist's `worksteal`, which cuts the list into one
    run for each worker and lets the idle take from the end of another's.

    So one worker has them all, starts one platform, and mostly waits for it while the others
    compute; at the end, when nothing is left to compute, nobody waits.
    """
    items.sort(key=lambda item: not is_e2e(item))


def is_e2e(item: pytest.Item) -> bool:
    return item.get_closest_marker("e2e") is not None
