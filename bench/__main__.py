"""Measure Amber against its goals on this machine: `python -m bench` (`make bench`).

Every number is a ratio or a difference within this one run: Amber's real processes against the
fake provider itself and against a bare proxy. It prints a table and writes everything to
var/bench/. The exit code is 1 if requests failed; a missed goal is no failure, since the machine
may be slow.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import uvloop

from bench import (
    context_assembly,
    fairness,
    footprint,
    idle_pages,
    ingestion,
    library_search,
    report,
    soak,
    streams,
    tracing_cost,
)
from bench.anatomy.anatomy import anatomy
from bench.loadgen import say
from bench.report import Finding
from bench.stand import ROOT, Stand, stand
from bench.streams import Participants

FOOTPRINT, SOAK = "footprint", "soak"
STREAMS: dict[str, Callable[[Participants], Coroutine[Any, Any, list[Finding]]]] = {
    "one-viewer": streams.one_viewer,
    "sixty-four": streams.sixty_four,
    "one-hundred-twenty-eight": streams.one_hundred_twenty_eight,
    "burst": streams.burst,
    "cpu": streams.cpu,
    "long-chat": streams.long_chat,
    "tool-calls": streams.tools_at_once,
}
"""What is measured of the same running processes."""
USUAL: dict[str, Callable[..., list[Finding]]] = {
    "anatomy": anatomy,
    "context": context_assembly.context_assembly,
    "ingestion": ingestion.ingestion,
    "search": library_search.library_search,
}
WHEN_NAMED: dict[str, Callable[..., list[Finding]]] = {
    "fairness": fairness.fairness,
    "idle-pages": idle_pages.idle_pages,
    "traces": tracing_cost.tracing_cost,
}


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that processes are stopped
    head = report.machine() | {"quick": options.quick}
    with stand() as place, place.provider() as provider_url:
        findings = list(_measure(place, provider_url, options))
    say("\n" + report.table(findings))
    if options.quick:
        say("A smoke run: these numbers say nothing.")
    say(f"\nMore in {report.write(options.out, head, findings)}")
    return int(any("ERRORS" in finding.note for finding in findings))


def _measure(place: Stand, provider_url: str, options: argparse.Namespace) -> Iterator[Finding]:
    wanted = options.only or [FOOTPRINT, *STREAMS, *USUAL]
    if FOOTPRINT in wanted:  # first, while the folder is empty
        say(f"{FOOTPRINT}:")
        yield from footprint.footprint(place, provider_url, is_quick=options.quick)
    if names := [name for name in STREAMS if name in wanted]:
        yield from _streams(place, provider_url, names, options)
    for name, measure in {**USUAL, **WHEN_NAMED}.items():
        if name in wanted:
            say(f"{name}:")
            yield from measure(place, provider_url, is_quick=options.quick)
    if SOAK in wanted:
        say(f"{SOAK}:")
        minutes = 1 if options.quick else options.minutes
        yield from soak.soak(place, provider_url, minutes=minutes, is_dense=options.dense)


def _streams(
    place: Stand, provider_url: str, names: list[str], options: argparse.Namespace
) -> list[Finding]:
    findings: list[Finding] = []
    beside = place.litellm(provider_url) if "litellm" in options.beside else nullcontext()
    with (
        place.bare_proxy(provider_url) as (proxy_url, proxy),
        beside as litellm_url,
        place.amber(provider_url) as amber,
    ):
        participants = Participants(
            provider_url, proxy_url, proxy, amber, options.quick, litellm_url
        )
        for name in names:
            say(f"{name}:")
            findings += uvloop.run(STREAMS[name](participants))
    return findings


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run, without meaning")
    parser.add_argument(
        "--only",
        action="append",
        choices=[FOOTPRINT, *STREAMS, *USUAL, *WHEN_NAMED, SOAK],
        help=f"may be given repeatedly; {', '.join(WHEN_NAMED)} and {SOAK} run only when named",
    )
    parser.add_argument(
        "--with",
        dest="beside",
        action="append",
        default=[],
        choices=["litellm"],
        help="measure streams beside this gateway, too; it is installed when it is asked for first",
    )
    parser.add_argument("--minutes", type=float, default=120, help=f"how long {SOAK} lasts")
    parser.add_argument("--dense", action="store_true", help=f"{SOAK} asks as fast as it can")
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "bench")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
