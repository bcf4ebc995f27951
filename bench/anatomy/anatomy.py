"""Show one turn by its parts: where the time goes between a question and its first token.

One viewer asks, one question after the other. What is recorded (`bench.anatomy.recorder`) costs some
0.02 ms a part, so the whole is a little longer here than in the other benches.
"""

import asyncio
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.anatomy.recorder import FOLDER
from bench.cells import interleave
from bench.loadgen import FIRST_TOKEN_MS, Load, Result, say
from bench.report import Finding
from bench.stand import ROOT, Stand
from bench.targets import amber_target

SITE: Final = Path(__file__).parent / "site"
QUESTIONS, WARM_UP = 60, 20
TOKENS = 10
STATEMENTS: Final = ("statement", "commit")


Line = tuple[str, int, int, int, str]
"""What `bench.anatomy.recorder` writes: the part, its begin and end in ns, the thread, about it."""


class Span(NamedTuple):
    """A part of one process. Milliseconds since the question was sent."""

    part: str
    began: float
    ended: float
    thread: int
    about: str

    def holds(self, other: "Span") -> bool:
        return self.thread == other.thread and self.began <= other.began <= self.ended


class Turn(NamedTuple):
    """One question: its parts, and when the provider got it, milliseconds since it was sent."""

    spans: Sequence[Span]
    asked_ms: float
    first_token_ms: float
    ended_ms: float


def anatomy(place: Stand, provider_url: str, *, is_quick: bool) -> list[Finding]:
    """Ask, and print the parts in order: when each begins, how long it is, with what statements."""
    folder = place.folder / "anatomy"
    folder.mkdir()
    count = 3 if is_quick else QUESTIONS
    path = f"{SITE}:{ROOT}"
    with place.amber(provider_url, PYTHONPATH=path, **{FOLDER: str(folder)}) as amber:
        target = amber_target(amber)
        asyncio.run(interleave([target], Load(1, TOKENS, WARM_UP, rounds=1)))
        found = asyncio.run(interleave([target], Load(1, TOKENS, count, rounds=1)))
    lines = list(_lines(folder))
    turns = [turn for result in found[target.name].results if (turn := _turn_of(result, lines))]
    for line in table(turns):
        say(line)
    before = statistics.median(turn.asked_ms for turn in turns)
    behind = statistics.median(turn.first_token_ms - turn.asked_ms for turn in turns)
    return [
        Finding("question sent to provider asked", before, "ms", note=f"{len(turns)} turns"),
        Finding(
            "provider asked to first token, its own pause aside", behind - FIRST_TOKEN_MS, "ms"
        ),
    ]


def _turn_of(result: Result, lines: Iterable[Line]) -> Turn | None:
    if result.way_in is None or result.ttft is None or result.total is None:
        return None
    sent_us = result.start
    spans = [
        Span(part, (began / 1e3 - sent_us) / 1e3, (ended / 1e3 - sent_us) / 1e3, thread, about)
        for part, began, ended, thread, about in lines
        if sent_us <= began / 1e3 <= sent_us + result.total
    ]
    return Turn(
        sorted(spans, key=lambda span: span.began),
        result.way_in / 1e3,
        result.ttft / 1e3,
        result.total / 1e3,
    )


def _lines(folder: Path) -> Iterable[Line]:
    for path in folder.glob("*.jsonl"):
        yield from map(json.loads, path.read_text().splitlines())


def table(turns: Sequence[Turn]) -> list[str]:
    """Return the lines of the table: medians over the turns, parts in the order of their begin.

    Statements are counted for the innermost part that makes them. What most turns do not have, such as a
    periodic job beside them, is left out.
    """
    begins: dict[str, list[float]] = defaultdict(list)
    lengths: dict[str, list[float]] = defaultdict(list)
    made: dict[str, list[int]] = defaultdict(list)
    spent: dict[str, list[float]] = defaultdict(list)
    for turn in turns:
        parts = {span.part: span for span in turn.spans if span.part not in STATEMENTS}
        own: dict[str, list[Span]] = {part: [] for part in parts}
        for span in turn.spans:
            if span.part in STATEMENTS:
                holders = [part for part in parts.values() if part.holds(span)]
                if holders:
                    own[min(holders, key=lambda part: part.ended - part.began).part].append(span)
        for name, part in parts.items():
            begins[name].append(part.began)
            lengths[name].append(part.ended - part.began)
            made[name].append(len(own[name]))
            spent[name].append(sum(each.ended - each.began for each in own[name]))
    lines = [f"{'at ms':>8} {'ms':>8} {'statements':>11} {'their ms':>9}  part"]
    lines.extend(
        f"{statistics.median(begins[name]):8.1f} {statistics.median(lengths[name]):8.1f}"
        f" {statistics.median(made[name]):11.0f} {statistics.median(spent[name]):9.1f}  {name}"
        for name in sorted(begins, key=lambda name: statistics.median(begins[name]))
        if 2 * len(begins[name]) > len(turns)
    )
    for what, values in (
        ("the provider is asked", [turn.asked_ms for turn in turns]),
        ("the first token", [turn.first_token_ms for turn in turns]),
        ("the end of the stream", [turn.ended_ms for turn in turns]),
    ):
        lines.append(f"{statistics.median(values):8.1f} {'':30}  {what}")
    return lines
