"""Measure what Amber adds to a stream: time to the first token, tokens per second, CPU seconds.

Each is compared with the same questions asked of the provider itself and of the bare proxy.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from bench.cells import Measured, interleave
from bench.loadgen import Load, Target
from bench.report import Finding, Json
from bench.stand import RunningAmber, cpu_seconds
from bench.targets import amber_target, openai_target
from bench.tool_calls import parallel_calls

_PLANNED = 12
"""Questions after which Postgres plans no statement of a turn anew."""


@dataclass(frozen=True, slots=True)
class Participants:
    """All that are measured, running."""

    provider_url: str
    proxy_url: str
    proxy: psutil.Process
    amber: RunningAmber
    is_quick: bool
    litellm_url: str | None = None

    def targets(self) -> list[Target]:
        """Return all that are asked by turns: the provider and the yardsticks, Amber last."""
        urls = {
            "provider": self.provider_url,
            "bare proxy": self.proxy_url,
            "LiteLLM": self.litellm_url,
        }
        asked = [openai_target(name, url) for name, url in urls.items() if url]
        return [*asked, amber_target(self.amber)]

    def proxy_cpu_seconds(self) -> dict[str, float]:
        return {"proxy": cpu_seconds(self.proxy)}


async def one_viewer(participants: Participants) -> list[Finding]:
    load = Load(concurrent=1, tokens=20, per_worker=15, rounds=4, warm_up=_PLANNED)
    if participants.is_quick:
        load = Load(concurrent=1, tokens=5, per_worker=3, rounds=1)
    found = await interleave(participants.targets(), load)
    return [_added("TTFT added, 1 viewer", found, at_most=15)]


async def sixty_four(participants: Participants) -> list[Finding]:
    load = Load(concurrent=64, tokens=100, per_worker=3, rounds=3)
    if participants.is_quick:
        load = Load(concurrent=8, tokens=20, per_worker=2, rounds=1)
    found = await interleave(participants.targets(), load)
    rate = {name: measured.tokens_per_second for name, measured in found.items()}
    shown = ", ".join(f"{name} {each:.0f}" for name, each in rate.items())
    return [
        _added(f"TTFT added, {load.concurrent} concurrent turns", found, at_most=50),
        Finding(
            f"tokens/s at {load.concurrent} against the provider",
            rate["amber"] / rate["provider"],
            "x",
            at_least=0.95,
            note=f"tokens/s: {shown}",
        ),
        Finding(
            f"tokens/s at {load.concurrent} against the bare proxy",
            rate["amber"] / rate["bare proxy"],
            "x",
            at_least=1.0,
        ),
    ]


async def one_hundred_twenty_eight(participants: Participants) -> list[Finding]:
    """Ask more than two cores can answer in time: the proxy queues, too."""
    load = Load(concurrent=128, tokens=100, per_worker=2, rounds=4)
    if participants.is_quick:
        load = Load(concurrent=16, tokens=20, per_worker=2, rounds=1)
    what = f"TTFT added, {load.concurrent} concurrent turns"
    return await _added_against_proxy(what, participants, load, at_most=1)


async def burst(participants: Participants) -> list[Finding]:
    load = Load(concurrent=64, tokens=50, per_worker=1, rounds=6, is_burst=True)
    if participants.is_quick:
        load = Load(concurrent=8, tokens=20, per_worker=1, rounds=1, is_burst=True)
    what = f"TTFT added, {load.concurrent} at once"
    return await _added_against_proxy(what, participants, load, at_most=2)


async def cpu(participants: Participants) -> list[Finding]:
    load = Load(concurrent=32, tokens=100, per_worker=3, rounds=3)
    if participants.is_quick:
        load = Load(concurrent=4, tokens=20, per_worker=2, rounds=1)
    targets = {target.name: target for target in participants.targets()}
    proxy, amber = targets["bare proxy"], targets["amber"]
    meters = {"amber": participants.amber.cpu_seconds, "bare proxy": participants.proxy_cpu_seconds}
    databases_before = participants.amber.database_cpu_seconds()
    found = await interleave([proxy, amber], load, meters=meters)
    by_role = found["amber"].cpu_by_role()
    databases = participants.amber.database_cpu_seconds() - databases_before
    return [
        Finding(
            f"CPU s per 1,000 tokens, {load.concurrent} concurrent turns",
            found["amber"].cpu_per_1000_tokens,
            "s",
            at_most=0.35,
            note=_note(found.values())
            + f"bare proxy {found['bare proxy'].cpu_per_1000_tokens:.3f} s; "
            + ", ".join(f"{role} {seconds:.3f}" for role, seconds in by_role.items()),
            details=_details(found) | {"database_cpu_seconds_of_all": databases},
        )
    ]


async def tools_at_once(participants: Participants) -> list[Finding]:
    return await parallel_calls(participants.amber, is_quick=participants.is_quick)


async def long_chat(participants: Participants) -> list[Finding]:
    """Ask in chats of their own: 1,000 stored messages against 2."""
    load = Load(concurrent=1, tokens=5, per_worker=10, rounds=6, warm_up=_PLANNED)
    long = 1_000
    if participants.is_quick:
        load = Load(concurrent=1, tokens=5, per_worker=2, rounds=1)
        long = 50
    short_name, long_name = "amber, 2 messages", f"amber, {long:,} messages"
    targets = [
        amber_target(participants.amber, stored=2, name=short_name),
        amber_target(participants.amber, stored=long, name=long_name),
    ]
    found = await interleave(targets, load)
    short_ms, long_ms = found[short_name].ttft_ms, found[long_name].ttft_ms
    return [
        Finding(
            f"TTFT, {long:,} stored messages against 2",
            long_ms - short_ms,
            "ms",
            at_most=5,
            note=_note(found.values()) + f"{long_ms:.1f} and {short_ms:.1f} ms",
            details=_details(found),
        )
    ]


async def _added_against_proxy(
    what: str, participants: Participants, load: Load, *, at_most: float
) -> list[Finding]:
    """Return how many times the bare proxy's added time Amber's is."""
    found = await interleave(participants.targets(), load)
    added = _added_ms(found)
    return [
        Finding(
            f"{what}, against the bare proxy's",
            added["amber"] / added["bare proxy"],
            "x",
            at_most=at_most,
            note=_note(found.values()) + _shown(added),
            details=_details(found),
        )
    ]


def _added(what: str, found: dict[str, Measured], *, at_most: float) -> Finding:
    """Return Amber's median TTFT less the provider's own; the yardsticks' for comparison."""
    added = _added_ms(found)
    return Finding(
        what,
        added.pop("amber"),
        "ms",
        at_most=at_most,
        note=_note(found.values()) + _shown(added),
        details=_details(found),
    )


def _added_ms(found: dict[str, Measured]) -> dict[str, float]:
    direct = found["provider"].ttft_ms
    return {name: each.ttft_ms - direct for name, each in found.items() if name != "provider"}


def _shown(added_ms: dict[str, float]) -> str:
    return ", ".join(f"{name} +{each:.1f} ms" for name, each in added_ms.items())


def _note(measured: Iterable[Measured]) -> str:
    errors = sum(each.errors for each in measured)
    return f"{errors} ERRORS; " if errors else ""


def _details(found: dict[str, Measured]) -> Json:
    return {name: measured.details() for name, measured in found.items()}
