"""Lay out sums of usage by day as the bars of a chart, which a template draws as SVG.

Days without calls have bars of no height. Pure; colours are the template's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

WIDTH: Final = 960
HEIGHT: Final = 240
GAP: Final = 2

SCALE_STEPS: Final = (1, 2, 5, 10)
"""The top of the scale is one of these times a power of ten, which people read at a glance."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's bar: `prompt` stands on the ground, `completion` on top of it.

    Sizes and positions are in SVG's units; y counts from the top.
    """

    day: date
    calls: int
    prompt_tokens: int
    completion_tokens: int
    x: float
    width: float
    prompt_y: float
    prompt_height: float
    completion_y: float
    completion_height: float


@dataclass(frozen=True, slots=True)
class Chart:
    bars: Sequence[Bar]
    top_tokens: int
    width: int = WIDTH
    height: int = HEIGHT


def chart_of(rows: Sequence[Mapping[str, Any]], since: date, until: date) -> Chart:
    """Lay out `rows`, which `report.sum_by_groups` summed by day, in any order."""
    by_day = {row["day"]: row for row in rows}
    days = [since + timedelta(days=n) for n in range((until - since).days + 1)]
    most = max((_tokens(row) for row in rows), default=0)
    top_tokens = _round_up(most)
    width = WIDTH / len(days)
    bars = [
        _bar(day, by_day.get(day, {}), n * width, width, HEIGHT / top_tokens)
        for n, day in enumerate(days)
    ]
    return Chart(bars, top_tokens)


def _bar(day: date, row: Mapping[str, Any], x: float, width: float, scale: float) -> Bar:
    prompt, completion = row.get("prompt_tokens", 0), row.get("completion_tokens", 0)
    prompt_height, completion_height = prompt * scale, completion * scale
    return Bar(
        day=day,
        calls=row.get("calls", 0),
        prompt_tokens=prompt,
        completion_tokens=completion,
        x=round(x, 2),
        width=round(max(width - GAP, 1), 2),
        prompt_y=round(HEIGHT - prompt_height, 2),
        prompt_height=round(prompt_height, 2),
        completion_y=round(HEIGHT - prompt_height - completion_height, 2),
        completion_height=round(completion_height, 2),
    )


def _tokens(row: Mapping[str, Any]) -> int:
    return int(row["prompt_tokens"] + row["completion_tokens"])


def _round_up(most: int) -> int:
    """Return the top of the scale: at least 10, so that an empty chart has one."""
    power = 10
    while power * SCALE_STEPS[-1] < most:
        power *= 10
    return next(step * power for step in SCALE_STEPS if step * power >= most)
