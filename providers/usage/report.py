"""The ledger, filtered and summed: by day (UTC), model, kind, assistant, key or user.

    filters = UsageFilters.read(request.query_params)
    rows = grouped(filters.applied_to(UsageRecord.objects.visible_to(principal)), ["day", "model"])

Sums are made by Postgres over an index of the tenant and time, so a report costs what its span
holds: at most MAX_DAYS. Refuses to decide who sees what: rows come in already limited.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Self
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from amber.lib.errors import Invalid
from providers.models import UsageKind, UsageRecord

YEARS: Final = range(1970, 9_999)
MAX_DAYS: Final = 366
DEFAULT_DAYS: Final = 30
"""What a report is about when no dates are given."""

MAX_GROUPS: Final = 5_000
"""A year of days for a dozen models; 1 MB of JSON."""

GROUPS: Final[Mapping[str, str]] = {
    "day": "day",
    "model": "model",
    "kind": "kind",
    "assistant": "assistant_id",
    "key": "api_key_id",
    "user": "user_id",
}
"""What may be grouped by, and the field that tells it."""

_IDS: Final = ("assistant_id", "api_key_id", "user_id")

SUMS: Final = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost")


@dataclass(frozen=True, slots=True)
class UsageFilters:
    """`since` and `until` are days, both included; None: no bound."""

    since: date | None = None
    until: date | None = None
    equal: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def read(cls, said: Mapping[str, str]) -> Self:
        """From `from`, `to`, `model`, `kind` and ids of a query string. Raises Invalid."""
        equal: dict[str, Any] = {name: said[name] for name in ("model", "kind") if said.get(name)}
        if equal.get("kind", UsageKind.CHAT) not in UsageKind.values:
            raise _wrong("kind", f"One of {', '.join(UsageKind.values)}.")
        equal |= {name: _id(name, said[name]) for name in _IDS if said.get(name)}
        since, until = _day("from", said.get("from")), _day("to", said.get("to"))
        if since and until and since > until:
            raise _wrong("to", "This is before `from`.")
        return cls(since, until, tuple(equal.items()))

    def bounded(self) -> Self:
        """With both dates: the last DEFAULT_DAYS where none are given. Raises Invalid for more
        than MAX_DAYS."""
        until = self.until or timezone.now().date()
        since = self.since or until - timedelta(days=DEFAULT_DAYS - 1)
        if (until - since).days >= MAX_DAYS:
            raise _wrong("from", f"A report is about {MAX_DAYS} days at most.")
        return type(self)(since, until, self.equal)

    def applied_to(self, rows: "QuerySet[UsageRecord]") -> "QuerySet[UsageRecord]":
        wanted = Q(**dict(self.equal))
        if self.since is not None:
            wanted &= Q(created_at__gte=_midnight(self.since))
        if self.until is not None:
            wanted &= Q(created_at__lt=_midnight(self.until + timedelta(days=1)))
        return rows.filter(wanted)


def read_groups(said: str) -> list[str]:
    """Names of GROUPS, separated by commas. Raises Invalid."""
    names = list(dict.fromkeys(name.strip() for name in said.split(",")))
    if not all(name in GROUPS for name in names):
        raise _wrong("group_by", f"Of {', '.join(GROUPS)}, separated by commas.")
    return names


def sum_by_groups(rows: "QuerySet[UsageRecord]", groups: Sequence[str]) -> list[dict[str, Any]]:
    """One row a group: its fields, `calls` and SUMS; newest day first, then most tokens first.

    One query. Raises Invalid for more than MAX_GROUPS.
    """
    fields = [GROUPS[name] for name in groups]
    if "day" in fields:
        rows = rows.annotate(day=TruncDate("created_at", tzinfo=UTC))
    summed = (
        rows.order_by()
        .values(*fields)
        .annotate(calls=Count("pk"), **{f"{name}_sum": Sum(name) for name in SUMS})
        .order_by(
            *(["-day"] if "day" in fields else []),
            (F("prompt_tokens_sum") + F("completion_tokens_sum")).desc(),
        )
    )
    found = list(summed[: MAX_GROUPS + 1])
    if len(found) > MAX_GROUPS:
        raise _wrong("group_by", f"More than {MAX_GROUPS:,} groups: ask for fewer days.")
    return [_row(each, fields) for each in found]


def _row(found: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    named = {name: found[name] for name in (*fields, "calls")}
    sums = {name: found[f"{name}_sum"] for name in SUMS}
    return named | sums | {"cost": f"{sums['cost']:.8f}"}


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _day(name: str, said: str | None) -> date | None:
    """Not so early or late that there is no day before, or after."""
    try:
        day = date.fromisoformat(said) if said else None
    except ValueError:
        raise _wrong(name, "A day, as 2031-12-31.") from None
    if day and day.year not in YEARS:
        raise _wrong(name, f"A day of the years {YEARS[0]} to {YEARS[-1]}.")
    return day


def _id(name: str, said: str) -> UUID:
    try:
        return UUID(said)
    except ValueError:
        raise _wrong(name, "Must be a UUID.") from None


def _wrong(name: str, text: str) -> Invalid:
    return Invalid(f"{name}: {text}", fields={name: [text]})
