"""Which tests come first and how long one may take; a pytest plugin.

The limits are generous: they turn an hour of silence into a failure that shows where each thread
stood, and say nothing about speed. Each is a marker, so that a test may have its own. The order
only saves time: a wrong number in SECONDS makes no test fail.
"""

from itertools import islice
from pathlib import Path
from typing import Final

import hypothesis
import pytest

E2E_SECONDS = 600
"""The first of them starts a platform, and waits in turn for each of its processes."""

COMPUTING: Final = 2
"""So many workers begin with tests that compute, as many as the usual machine has cores."""
E2E_MODULE_SECONDS: Final = 10
_SLOW: Final = {
    130: "import_hostile_exports",
    100: "look_at_every_page survive_broken_links lose_nothing",
    80: "survive_dead_workers up",
    70: "partition_online follow_sentinels measure_patterns",
    60: "survive_dead_servers ingest_documents untrusted_content readme",
    50: "read_replica trace_turns talk restore_backups measure_memory ask_and_watch",
    40: "restart_in_turn egress_sinks pool_connections read_along database_roles",
    30: "look_after_oneself embed_widget call_services use_openais_client setup",
    20: "tell_webhooks stay_quick keep_libraries embedded serve_memories admin_names meet_habits",
}
SECONDS: Final = {
    f"test_{name}": seconds for seconds, names in _SLOW.items() for name in names.split()
}
"""What slow modules take on two cores, among all others; `--durations=50` tells of single tests."""


# Hypothesis' own limit of 200 ms an example would be one on speed; it has none where CI is set.
hypothesis.settings.register_profile("patient", hypothesis.settings.default, deadline=None)
hypothesis.settings.load_profile("patient")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if is_e2e(item) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(E2E_SECONDS))
    if hasattr(config, "workerinput"):
        put_slow_first(items, workers=config.workerinput["workercount"])


def put_slow_first(items: list[pytest.Item], *, workers: int) -> None:
    """Slow modules before all others in the share of each worker, for xdist's `worksteal`, which
    cuts the list into one run for each worker and lets the idle take from the end of another's.

    All workers but COMPUTING begin with end-to-end tests. Each starts one platform and mostly waits
    for it, while the others compute; at the end, when only quick tests are left, nobody waits.
    """
    modules: dict[str, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
    slow = {name: seconds for name, tests in modules.items() if (seconds := _seconds(name, tests))}
    quick = iter([item for item in items if item.nodeid.partition("::")[0] not in slow])
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    loads = [0] * workers
    waiting = range(max(1, workers - COMPUTING))
    computing = range(min(waiting.stop, workers - 1), workers)
    for name in sorted(slow, key=lambda name: -slow[name]):
        fit = waiting if any(map(is_e2e, modules[name])) else computing
        least = min(fit, key=loads.__getitem__)
        loads[least] += slow[name]
        shares[least] += modules[name]
    left = len(items)
    items.clear()
    for number, share in enumerate(shares):
        size = left // (workers - number)  # as worksteal cuts
        left -= size
        items += [*share, *islice(quick, max(0, size - len(share)))]
    items += quick


def _seconds(module: str, tests: list[pytest.Item]) -> int:
    """What a slow module takes; 0 for all others."""
    return SECONDS.get(Path(module).stem, E2E_MODULE_SECONDS if any(map(is_e2e, tests)) else 0)


def is_e2e(item: pytest.Item) -> bool:
    return item.get_closest_marker("e2e") is not None
