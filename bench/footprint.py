"""Measure what an idle installation costs: seconds until it answers, and memory."""

import time

from bench.report import Finding
from bench.stand import Memory, RunningAmber, Stand

SETTLE_SECONDS = 15
"""The time in which the maintenance of all workers has run a few times."""


def footprint(stand: Stand, provider_url: str, *, is_quick: bool) -> list[Finding]:
    """Start twice in the stand's folder, which must be empty."""
    with stand.amber(provider_url) as first:
        pass
    with stand.amber(provider_url) as second:
        time.sleep(0 if is_quick else SETTLE_SECONDS)
        held = second.memory()
    return [
        _start("start on an installed machine", second, at_most=8),
        _start("first start, with an empty var", first),
        _memory(held),
    ]


def _start(what: str, amber: RunningAmber, at_most: float | None = None) -> Finding:
    return Finding(
        what,
        amber.healthy_seconds,
        "s",
        at_most=at_most,
        note=f"workers consume after {amber.ready_seconds:.1f} s",
    )


def _memory(held: dict[str, Memory]) -> Finding:
    by_process = ", ".join(f"{name} {each.rss:.0f}" for name, each in held.items())
    shares = [each.pss for each in held.values() if each.pss is not None]
    shared = f"PSS {sum(shares):.0f} MB; " if shares else ""
    return Finding(
        "idle memory, RSS of all processes",
        sum(each.rss for each in held.values()),
        "MB",
        at_most=350,
        note=f"{shared}{by_process}",
        details={name: {"rss": each.rss, "pss": each.pss} for name, each in held.items()},
    )
