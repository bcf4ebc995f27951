"""Discover and call hostile services, and print how much the process's memory grew for each.

    python -m tools.tests.calling.hostile_bodies GOOD_URL URL…      {"<url> discover": MiB, …}

The good one comes first, so that what is loaded once is not counted.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import django


def resident_mib(field: str) -> float:
    """Return `VmRSS`, memory now, or `VmHWM`, its highest since `forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1_024
    raise RuntimeError(f"/proc says nothing of {field}")


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def main(good: str, urls: list[str]) -> None:
    from amber.lib.ids import new_id
    from tools.connections.inspection import InspectionRequest, discover_all
    from tools.discovery.source import DiscoverySource
    from tools.protocol import ToolContext, ToolError
    from tools.source import Connection
    from tools.tests.tool_service import function

    def discover(url: str) -> None:
        discover_all([InspectionRequest("discovery", Connection(url=url))])

    def call(url: str) -> None:
        data = {"callback_url": url, "functions": [function("f")]}
        (called,) = DiscoverySource().functions(Connection(url=url), data)
        context = ToolContext(organization_id=new_id(), call_id="c", exchanges=[])
        try:
            asyncio.run(called.call({}, context))
        except ToolError:
            pass

    growth: dict[str, float] = {}
    for way in (discover, call):
        way(good)
        for url in urls:
            forget_peak()
            before = resident_mib("VmRSS")
            way(url)
            growth[f"{url} {way.__name__}"] = round(resident_mib("VmHWM") - before, 1)
    print(json.dumps(growth))  # noqa: T201


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
    django.setup()
    main(sys.argv[1], sys.argv[2:])
