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
        put_waiting_first(items, workers=config.workerinput["workercount"])


def put_waiting_first(items: list[pytest.Item], *, workers: int) -> None:
    """End-to-end tests before all others, for xdist's `worksteal`, which cuts the list into one
    run for each worker and lets the idle take from the end of another's.

    One worker begins with those without a browser, the next one with those that have one. Each
    starts one platform and mostly waits for it, while the other workers compute; at the end, when
    nothing is left to compute, nobody waits.
    """
    others = [item for item in items if not is_e2e(item)]
    waiting = [item for item in items if is_e2e(item)]
    first = [item for item in waiting if not has_browser(item)]
    second = [item for item in waiting if has_browser(item)]
    until_second = max(0, len(items) // workers - len(first))
    items[:] = [*first, *others[:until_second], *second, *others[until_second:]]


def is_e2e(item: pytest.Item) -> bool:
    return item.get_closest_marker("e2e") is not None


def has_browser(item: pytest.Item) -> bool:
    return "browser" in getattr(item, "fixturenames", ())
