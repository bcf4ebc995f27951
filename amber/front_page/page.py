"""Gather the front page: Unfold's DASHBOARD_CALLBACK. At most twelve queries with the session's own.

Each part is shown to operators with the right to see the rows that it is about.
"""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from amber.front_page import advice, failures, health
from amber.front_page.states import HealthCheck, worst
from providers.models import Provider, UsageRecord
from providers.usage.chart import Chart, chart_of
from providers.usage.day_sums import DaySum, recent_days
from providers.usage.figures import write_cost, write_count, write_short


def gather(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Return the page's context: what the template has already, and the parts of the page."""
    user: Any = request.user
    checks = health.check_platform()
    if _may_view(user, Provider):
        checks += health.check_providers()
    page: dict[str, Any] = {
        "checks": checks,
        "verdict": worst(checks),
        "verdict_text": _verdict(checks),
        "steps": advice.next_steps(request),
        "failures": failures.recent_failures(lambda model: _may_view(user, model)),
    }
    if _may_view(user, UsageRecord):
        page |= _usage(recent_days())
    return context | page | {"title": _("System health")}


def _may_view(user: Any, model: Any) -> bool:
    about = model._meta
    return bool(user.has_perm(f"{about.app_label}.view_{about.model_name}"))


def _verdict(checks: Sequence[HealthCheck]) -> str:
    """Say in a sentence how it all is."""
    for state in ("failed", "warning"):
        if names := [check.name for check in checks if check.state == state]:
            said = {"names": ", ".join(names)}
            if state == "failed":
                return _("Not working: %(names)s.") % said
            return _("Everything runs, but check %(names)s.") % said
    return _("Everything works.")


def _usage(days: Sequence[DaySum]) -> dict[str, Any]:
    """Return today's figures beside those of all days, and the chart."""
    today, cost = days[-1], f"{_('Cost')} ({settings.AMBER_CURRENCY})"
    figures = [
        (_("Turns"), write_count(today.turns), write_count(sum(each.turns for each in days))),
        (_("Tokens"), write_short(today.tokens), write_short(sum(each.tokens for each in days))),
        (_("Calls"), write_count(today.calls), write_count(sum(each.calls for each in days))),
        (cost, write_cost(today.cost), write_cost(sum(Decimal(each.cost) for each in days))),
    ]
    return {
        "figures": figures,
        "days": days,
        "chart": _chart(days),
        "usage_link": reverse("admin:providers_usagerecord_report"),
    }


def _chart(days: Sequence[DaySum]) -> Chart:
    said = {"n": len(days), "sum": write_count(sum(each.tokens for each in days))}
    return chart_of(
        {date.fromisoformat(each.day): [each.tokens] for each in days},
        date.fromisoformat(days[0].day),
        date.fromisoformat(days[-1].day),
        series=[_("tokens:")],
        label=_("Tokens a day in the last %(n)s days, %(sum)s in all. A table follows.") % said,
        write=write_short,
    )
