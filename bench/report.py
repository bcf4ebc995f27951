"""Report findings: a table with their goals, and everything else as JSON."""

import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """One number, next to its goal (None: it only explains another number)."""

    what: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""
    details: Json = field(default_factory=dict)

    @property
    def goal(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g} {self.unit}"
        return "" if self.at_least is None else f">= {self.at_least:g} {self.unit}"

    @property
    def verdict(self) -> str:
        if self.at_most is not None:
            return "met" if self.value <= self.at_most else "MISSED"
        if self.at_least is not None:
            return "met" if self.value >= self.at_least else "MISSED"
        return ""


def median(values: Iterable[float]) -> float:
    """Return the median; NaN of nothing, which is shown as such and meets no goal."""
    known = list(values)
    return statistics.median(known) if known else float("nan")


def table(findings: Sequence[Finding]) -> str:
    rows = [("what", "measured", "goal", "", "")]
    rows += [(f.what, f"{_shown(f.value)} {f.unit}", f.goal, f.verdict, f.note) for f in findings]
    return align(rows, left=len(rows[0]))


def align(rows: Sequence[Sequence[str]], *, left: int) -> str:
    """Return the rows as lines of a table; the first `left` columns stand to the left, others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _shown(value: float) -> str:
    """Format with three digits, but never an exponent."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def machine() -> Json:
    """Return where and when this was measured, and how busy the machine was before."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "load_average": os.getloadavg(),
    }


def write(folder: Path, head: Json, findings: Sequence[Finding]) -> Path:
    """Write everything as JSON, to a file named after the time."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = head["at"].replace(":", "").replace("+0000", "Z")
    path = folder / f"{stamp}.json"
    found = [asdict(f) | {"verdict": f.verdict} for f in findings]
    path.write_text(json.dumps({**head, "findings": found}, indent=1) + "\n")
    return path
