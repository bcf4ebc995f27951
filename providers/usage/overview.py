"""Sum usage for the operators' page: in all, by group, by day, and the largest groups day by day.

    overview = overview_of(UsageRecord.objects.all(), filters, OverviewChoice.read(request.GET))

Three queries over the chosen days, and one for names. Texts for people are in the operator's
language; the numbers are written by `providers.usage.figures`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from decimal import Decimal
from typing import Any, Final, Self

from django.db.models import Case, Count, IntegerField, QuerySet, Sum, Value, When
from django.db.models.functions import TruncDate
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from amber.lib.errors import Invalid
from providers.models import UsageRecord
from providers.usage.chart import Chart, chart_of
from providers.usage.figures import write_cost, write_count, write_short
from providers.usage.names import label_of, names_of
from providers.usage.report import OPERATORS_GROUPS, SUMS, UsageFilters, sum_by_groups

SHOWN_GROUPS: Final = 100
"""Rows of the page's table; the CSV has all."""
COLOURED_GROUPS: Final = 6
"""Series of the chart, besides that of all others; as many colours are told apart."""

GROUP_TITLES: Final[Mapping[str, Promise]] = {
    "model": gettext_lazy("Model"),
    "kind": gettext_lazy("Kind of call"),
    "assistant": gettext_lazy("Assistant"),
    "key": gettext_lazy("API key"),
    "user": gettext_lazy("Person"),
    "organization": gettext_lazy("Organization"),
}


@dataclass(frozen=True, slots=True)
class Measure:
    """What the chart shows: the value of a row of sums, and how it is written on an axis."""

    title: Promise
    value: Callable[[Mapping[str, Any]], float]
    write: Callable[[float], str]
    least: float = 10


def _tokens(row: Mapping[str, Any]) -> int:
    return int(row["prompt_tokens"] + row["completion_tokens"])


MEASURES: Final[Mapping[str, Measure]] = {
    "tokens": Measure(gettext_lazy("Tokens"), _tokens, write_short),
    "calls": Measure(gettext_lazy("Calls"), lambda row: int(row["calls"]), write_short),
    "cost": Measure(gettext_lazy("Cost"), lambda row: float(row["cost"]), write_cost, least=0.01),
}


@dataclass(frozen=True, slots=True)
class OverviewChoice:
    """By what the usage is told apart, and what of it the chart shows."""

    group: str = "model"
    measure: str = "tokens"

    @classmethod
    def read(cls, said: Mapping[str, str]) -> Self:
        """Read `by` and `measure` from a query string. Raises Invalid."""
        group, measure = said.get("by") or "model", said.get("measure") or "tokens"
        if group not in GROUP_TITLES or measure not in MEASURES:
            raise Invalid(_("There is no such chart. Choose one below."))
        return cls(group, measure)


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A row of a table, written for people. `percent` is its part of what the chart shows."""

    label: str
    calls: str
    prompt_tokens: str
    cached_tokens: str
    completion_tokens: str
    reasoning_tokens: str
    cost: str
    percent: int
    series: int | None = None


@dataclass(frozen=True, slots=True)
class UsageOverview:
    total: UsageRow
    groups: Sequence[UsageRow]
    days: Sequence[UsageRow]
    legend: Sequence[tuple[int, str]]
    chart: Chart
    hidden_groups: int


def overview_of(
    rows: "QuerySet[UsageRecord]", filters: UsageFilters, choice: OverviewChoice
) -> UsageOverview:
    """Sum the rows of the filters' days, both of which are given. Four queries.

    Raises Invalid where there are too many groups to sum.
    """
    chosen = filters.apply_to(rows)
    measure, field = MEASURES[choice.measure], OPERATORS_GROUPS[choice.group]
    groups = sorted(sum_by_groups(chosen, [choice.group]), key=measure.value, reverse=True)
    names = names_of(groups[:SHOWN_GROUPS], choice.group)
    labels = [label_of(row[field], names) for row in groups[:SHOWN_GROUPS]]
    total = _sum_up(groups)
    all_of_it = measure.value(total)
    days = sum_by_groups(chosen, ["day"])
    return UsageOverview(
        total=_row(_("Together"), total, measure, all_of_it),
        groups=[
            _row(label, row, measure, all_of_it, n)
            for n, (label, row) in enumerate(zip(labels, groups, strict=False))
        ],
        days=[_row(str(row["day"]), row, measure, all_of_it) for row in days],
        legend=_legend(labels, len(groups)),
        chart=_chart(chosen, filters, choice, groups, labels),
        hidden_groups=max(0, len(groups) - SHOWN_GROUPS),
    )


def _legend(labels: Sequence[str], group_count: int) -> list[tuple[int, str]]:
    named = list(enumerate(labels[:COLOURED_GROUPS]))
    others = [(COLOURED_GROUPS, _("All others"))] if group_count > COLOURED_GROUPS else []
    return named + others


def _chart(
    chosen: "QuerySet[UsageRecord]",
    filters: UsageFilters,
    choice: OverviewChoice,
    groups: Sequence[Mapping[str, Any]],
    labels: Sequence[str],
) -> Chart:
    measure, field = MEASURES[choice.measure], OPERATORS_GROUPS[choice.group]
    since, until = filters.bounds
    series = [*labels[:COLOURED_GROUPS], _("All others")]
    largest = [row[field] for row in groups[:COLOURED_GROUPS]]
    values = _day_by_day(chosen, field, largest, measure)
    said = {
        "measure": measure.title,
        "since": since,
        "until": until,
        "sum": measure.write(sum(map(measure.value, groups))),
        "group": GROUP_TITLES[choice.group],
    }
    return chart_of(
        {day: [by.get(n, 0) for n in range(len(series))] for day, by in values.items()},
        since,
        until,
        series=series,
        label=_("%(measure)s by day and %(group)s, %(since)s to %(until)s: %(sum)s in all.") % said,
        write=measure.write,
        least=measure.least,
    )


def _day_by_day(
    chosen: "QuerySet[UsageRecord]", field: str, largest: Sequence[Any], measure: Measure
) -> dict[date, dict[int, float]]:
    """Return by day and place of the group in `largest` what is measured; all others come after
    them. One query, of at most seven rows a day."""
    cases = [
        When(**({field: key} if key is not None else {f"{field}__isnull": True}), then=Value(n))
        for n, key in enumerate(largest)
    ]
    place = Case(*cases, default=Value(COLOURED_GROUPS), output_field=IntegerField())
    summed: Iterable[Any] = (
        chosen.annotate(day=TruncDate("created_at", tzinfo=UTC), place=place)
        .order_by()
        .values("day", "place")
        .annotate(calls=Count("pk"), **{f"{name}_sum": Sum(name) for name in SUMS})
    )
    found: dict[date, dict[int, float]] = {}
    for row in summed:
        sums = {name: row[f"{name}_sum"] for name in SUMS} | {"calls": row["calls"]}
        found.setdefault(row["day"], {})[row["place"]] = measure.value(sums)
    return found


def _sum_up(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = dict.fromkeys((*SUMS, "calls"), 0) | {"cost": Decimal(0)}
    for row in rows:
        for name in (*SUMS, "calls"):
            total[name] += Decimal(row[name]) if name == "cost" else row[name]
    return total


def _row(
    label: str,
    sums: Mapping[str, Any],
    measure: Measure,
    all_of_it: float,
    place: int | None = None,
) -> UsageRow:
    counts = {name: write_count(sums[name]) for name in (*SUMS, "calls") if name != "cost"}
    return UsageRow(
        label=label,
        **counts,
        cost=write_cost(sums["cost"]),
        percent=round(100 * measure.value(sums) / all_of_it) if all_of_it else 0,
        series=None if place is None else min(place, COLOURED_GROUPS),
    )


@dataclass(frozen=True, slots=True)
class Period:
    """Days that people ask for by one name."""

    title: str
    since: date
    until: date


def usual_periods(today: date) -> list[Period]:
    """Return what people usually want to see, up to today (UTC)."""
    month = today.replace(day=1)
    before = (month - timedelta(days=1)).replace(day=1)
    last_days = [
        Period(_("%(days)s days") % {"days": n}, today - timedelta(days=n - 1), today)
        for n in (7, 30, 90, 365)
    ]
    return [
        *last_days,
        Period(_("This month"), month, today),
        Period(_("Last month"), before, month - timedelta(days=1)),
    ]
