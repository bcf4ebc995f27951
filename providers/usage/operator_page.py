"""Answer the operators' page of usage: charts and tables, and the same sums as CSV.

Whoever calls it has checked the operator's rights.
"""

from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from accounts.models import Organization
from amber.lib.errors import Invalid
from amber.lib.rest.csv_text import csv_response
from providers.models import UsageRecord
from providers.usage.names import with_names
from providers.usage.overview import (
    GROUP_TITLES,
    MEASURES,
    OverviewChoice,
    overview_of,
    usual_periods,
)
from providers.usage.report import MAX_CSV_GROUPS, UsageFilters, sum_by_groups

REPORT: Final = "admin/providers/usage_report.html"
_CSVS: Final = ("groups", "days", "both")


def usage_page(request: HttpRequest, page: dict[str, Any]) -> HttpResponse:
    """Return the page, or with `csv` in the query a file. `page` is what every page of the admin
    has."""
    said = request.GET
    page |= {"slug": said.get("organization", "").strip(), "choice": OverviewChoice()}
    page["currency"] = settings.AMBER_CURRENCY
    page |= {"groups": GROUP_TITLES.items(), "measures": MEASURES.items()}
    try:
        filters = UsageFilters.read(said).with_both_dates()
        page["since"], page["until"] = filters.bounds
        page["choice"] = choice = OverviewChoice.read(said)
        rows = _rows_of(page["slug"])
        if said.get("csv") in _CSVS:
            return _file(rows, filters, choice, said["csv"])
        page["overview"] = overview_of(rows, filters, choice)
    except Invalid as error:
        page["problem"] = error.message
    return TemplateResponse(request, REPORT, page | _links(said, page))


def _rows_of(slug: str) -> "QuerySet[UsageRecord]":
    rows = UsageRecord.objects.all()
    return rows.filter(organization__in=Organization.objects.filter(slug=slug)) if slug else rows


def _file(
    rows: "QuerySet[UsageRecord]", filters: UsageFilters, choice: OverviewChoice, what: str
) -> HttpResponse:
    groups = {"groups": [choice.group], "days": ["day"], "both": ["day", choice.group]}[what]
    sums = sum_by_groups(filters.apply_to(rows), groups, most=MAX_CSV_GROUPS)
    columns, table = with_names(sums, groups)
    name = "-".join(["amber-usage", *groups, filters.days_named])
    return csv_response(columns, table, filename=f"{name}.csv")


def _links(said: QueryDict, page: dict[str, Any]) -> dict[str, Any]:
    """Return the titles and the links to what else may be shown, with what was chosen kept."""
    choice = page["choice"]
    group_title, measure_title = GROUP_TITLES[choice.group], MEASURES[choice.measure].title
    periods = [
        {
            "title": each.title,
            "query": _change_query(said, **{"from": str(each.since), "to": str(each.until)}),
            "is_shown": (each.since, each.until) == (page.get("since"), page.get("until")),
        }
        for each in usual_periods(datetime.now(UTC).date())
    ]
    return {
        "title": _("Usage"),
        "periods": periods,
        "group_title": group_title,
        "chart_title": _("%(measure)s by day · %(group)s")
        % {"measure": measure_title, "group": group_title},
        **{f"csv_{name}": _change_query(said, csv=name) for name in _CSVS},
    }


def _change_query(said: QueryDict, **changes: str) -> str:
    query = said.copy()
    for name, value in changes.items():
        query[name] = value
    return query.urlencode()
