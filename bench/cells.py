"""Run targets against each other: short cells in turn, several rounds.

So a ratio compares runs that lie seconds apart on the same noisy machine.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench.loadgen import Load, Result, Row, Target, cell, say
from bench.report import Json, median

PAUSE_SECONDS = 1.0
"""Between cells: what the last one left to do must not burden the next."""
CpuMeter = Callable[[], dict[str, float]]


@dataclass(slots=True)
class Measured:
    """What one target did in all rounds."""

    rows: list[Row] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    cpu_seconds: list[dict[str, float]] = field(default_factory=list)
    """By role, one a round; empty without a meter."""
    tokens: list[int] = field(default_factory=list)

    @property
    def ttft_ms(self) -> float:
        return median(r.ttft / 1e3 for r in self.results if r.ok and r.ttft is not None)

    @property
    def tokens_per_second(self) -> float:
        return median(row["tok_per_s"] for row in self.rows)

    @property
    def errors(self) -> int:
        return sum(not result.ok for result in self.results)

    @property
    def cpu_per_1000_tokens(self) -> float:
        used = zip(self.cpu_seconds, self.tokens, strict=True)
        return median(sum(cpu.values()) / tokens * 1_000 for cpu, tokens in used if tokens)

    def cpu_by_role(self) -> dict[str, float]:
        """Return the CPU seconds per 1,000 tokens, over all rounds."""
        total = sum(self.tokens) or 1
        return {
            role: round(sum(cpu[role] for cpu in self.cpu_seconds) / total * 1_000, 4)
            for role in (self.cpu_seconds[0] if self.cpu_seconds else ())
        }

    def details(self) -> Json:
        return {"rounds": self.rows, "cpu_seconds_per_1000_tokens": self.cpu_by_role()}


async def interleave(
    targets: Sequence[Target], load: Load, *, meters: Mapping[str, CpuMeter] | None = None
) -> dict[str, Measured]:
    """Measure each target; return the numbers by name.

    `meters` return the CPU seconds used so far.
    """
    measured = {target.name: Measured() for target in targets}
    for target in targets:
        await _warm_up(target, load)
    for number in range(load.rounds):
        for target in targets if number % 2 == 0 else targets[::-1]:
            await target.prepare(load.concurrent * load.per_worker)
            await asyncio.sleep(PAUSE_SECONDS)
            await _run(target, load, measured[target.name], (meters or {}).get(target.name))
    return measured


async def _warm_up(target: Target, load: Load) -> None:
    """Ask at full concurrency, so that imports, threads, connections and plans are there."""
    await target.prepare(load.concurrent * load.warm_up)
    await cell(target, replace(load, tokens=5, per_worker=load.warm_up, is_burst=True))


async def _run(target: Target, load: Load, into: Measured, meter: CpuMeter | None) -> None:
    before = meter() if meter else {}
    began = time.monotonic()
    row, results = await cell(target, load)
    say(
        f"    {target.name:24} {load.concurrent:3} at once  TTFT {row['ttft_p50']} ms"
        f"  {row['tok_per_s']} tokens/s  errors {row['errors']}"
        f"  load generator {row['loadgen_cpu_share']:.0%} of a core"
        f"  ({time.monotonic() - began:.0f} s)"
    )
    if row["error_kinds"]:
        say(f"        {row['error_kinds']}")
    if meter:
        after = meter()
        into.cpu_seconds.append({role: after[role] - before.get(role, 0) for role in after})
    into.rows.append(row)
    into.results += results
    into.tokens.append(sum(result.tokens for result in results))
