"""Lay out sums by day as stacked bars with axes, which a template draws (`admin/providers/bars.html`).

Days without a value have bars of no height. Pure; colours are the style sheet's. The bars are SVG
that stretches with the page, so words are no part of it: the template sets them beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import floor, log10
from typing import Final

WIDTH: Final = 960
HEIGHT: Final = 240
FILLED: Final = 0.8
"""The part of a day's width that its bar takes."""

SCALE_STEPS: Final = ((1, 2), (2, 4), (2.5, 5), (5, 5), (10, 2))
"""The top of the scale is one of the first times a power of ten, which people read at a glance; the
second is the number of parts that lines cut it into."""
DAYS_NAMED: Final = 7
"""Names of days that fit below a chart, on a phone too."""

Values = Mapping[date, Sequence[float]]
"""By day the value of each series, in one order."""


@dataclass(frozen=True, slots=True)
class BarPart:
    """One series' part of a bar. Positions are in SVG's units; y counts from the top."""

    series: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's bar; `title` says its figures in words."""

    day: date
    x: float
    width: float
    title: str
    parts: Sequence[BarPart]


@dataclass(frozen=True, slots=True)
class Chart:
    """A bar for each day.

    `marks` are the words at the lines of the scale, from the top down to zero; `days` are the days by
    place, None where there is no room for a name. `label` says it all in a sentence, for screen readers.
    """

    bars: Sequence[Bar]
    marks: Sequence[str]
    lines: Sequence[float]
    days: Sequence[date | None]
    label: str
    width: int = WIDTH
    height: int = HEIGHT


def chart_of(
    values: Values,
    since: date,
    until: date,
    *,
    series: Sequence[str],
    label: str,
    write: Callable[[float], str],
    least: float = 10,
) -> Chart:
    """Lay out the days from `since` to `until`, both included. `write` says a value in words.

    `series` are the names of the values of a day, the lowest part of a bar first. `least` is the top
    of the scale of an empty chart.
    """
    days = [since + timedelta(days=n) for n in range((until - since).days + 1)]
    top, parts = scale_of(max((sum(each) for each in values.values()), default=0), least)
    width = WIDTH / len(days)
    bars = [
        _bar(day, values.get(day, ()), n * width, width, top, series, write)
        for n, day in enumerate(days)
    ]
    every = -(-len(days) // DAYS_NAMED)
    return Chart(
        bars=bars,
        marks=[write(top * n / parts) for n in range(parts, -1, -1)],
        lines=[round(HEIGHT * n / parts, 2) for n in range(parts + 1)],
        days=[None if n % every else day for n, day in enumerate(days)],
        label=label,
    )


def scale_of(most: float, least: float = 10) -> tuple[float, int]:
    """Return the top of a scale that reaches `most`, and into how many parts its lines cut it."""
    power = 10.0 ** floor(log10(max(most, least)))
    found = ((step * power, parts) for step, parts in SCALE_STEPS if step * power >= most)
    return next(found)


def _bar(
    day: date,
    values: Sequence[float],
    x: float,
    width: float,
    top: float,
    series: Sequence[str],
    write: Callable[[float], str],
) -> Bar:
    parts, below = [], 0.0
    for n, value in enumerate(values):
        height = value * HEIGHT / top
        below += height
        parts.append(BarPart(n, round(HEIGHT - below, 2), round(height, 2)))
    said = [f"{series[n]} {write(value)}" for n, value in enumerate(values) if value]
    return Bar(
        day=day,
        x=round(x + width * (1 - FILLED) / 2, 2),
        width=round(width * FILLED, 2),
        title=f"{day}: {', '.join(said) or write(0)}",
        parts=[part for part in parts if part.height],
    )
