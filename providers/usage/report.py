"""Filter and sum the ledger: by day (UTC), model, kind, assistant, key or user.

    filters = UsageFilters.read(request.query_params)
    rows = filters.applied_to(UsageRecord.objects.visible_to(principal))
    sums = sum_by_groups(rows, ["day", "model"])

Postgres sums over an index of the tenant and time, so a report costs as much as its span holds, at
most MAX_DAYS. Who sees what is not decided here: the caller passes rows that are already limited.
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
from providers.models import UsageKind, UsageRecord, made_between

YEARS: Final = range(1970, 9_999)
MAX_DAYS: Final = 366
DEFAULT_DAYS: Final = 30
"""The span of a report when no dates are given."""

MAX_GROUPS: Final = 5_000
"""A year of days for a dozen models; 1 MB of JSON."""
MAX_CSV_GROUPS: Final = 50_000
"""A month of days for a thousand people and more; 5 MB."""

GROUPS: Final[Mapping[str, str]] = {
    "day": "day",
    "model": "model",
    "kind": "kind",
    "assistant": "assistant_id",
    "key": "api_key_id",
    "user": "user_id",
}
"""The names that a report can be grouped by, and the field of each."""

OPERATORS_GROUPS: Final[Mapping[str, str]] = {**GROUPS, "organization": "organization_id"}
"""The same for operators, whose reports are about all organizations."""

_IDS: Final = ("assistant_id", "api_key_id", "user_id")

SUMS: Final = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "cost")


@dataclass(frozen=True, slots=True)
class UsageFilters:
    """The calls to report; `since` and `until` are days, both included, and None is no bound."""

    since: date | None = None
    until: date | None = None
    equal: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def read(cls, said: Mapping[str, str]) -> Self:
        """Read `from`, `to`, `model`, `kind` and ids from a query string. Raises Invalid."""
        equal: dict[str, Any] = {name: said[name] for name in ("model", "kind") if said.get(name)}
        if equal.get("kind", UsageKind.CHAT) not in UsageKind.values:
            raise _invalid_field("kind", f"Must be one of {', '.join(UsageKind.values)}.")
        equal |= {name: _id(name, said[name]) for name in _IDS if said.get(name)}
        since, until = _day("from", said.get("from")), _day("to", said.get("to"))
        if since and until and since > until:
            raise _invalid_field("to", "Must not be before `from`.")
        return cls(since, until, tuple(equal.items()))

    def with_both_dates(self) -> Self:
        """Return filters with both dates: the last DEFAULT_DAYS if none are given.

        Raises Invalid for more than MAX_DAYS.
        """
        until = self.until or timezone.now().date()
        since = self.since or until - timedelta(days=DEFAULT_DAYS - 1)
        if (until - since).days >= MAX_DAYS:
            raise _invalid_field("from", f"A report covers at most {MAX_DAYS} days.")
        return type(self)(since, until, self.equal)

    @property
    def bounds(self) -> tuple[date, date]:
        """Both dates, where there are both (`with_both_dates`)."""
        assert self.since is not None, "they are bounded"
        assert self.until is not None, "they are bounded"
        return self.since, self.until

    @property
    def days_named(self) -> str:
        """Both days as a name of a file has them."""
        return f"{self.since}-to-{self.until}"

    def applied_to(self, rows: "QuerySet[UsageRecord]") -> "QuerySet[UsageRecord]":
        since = None if self.since is None else _midnight(self.since)
        until = None if self.until is None else _midnight(self.until + timedelta(days=1))
        return rows.filter(Q(**dict(self.equal)), made_between(since, until))


def read_groups(said: str) -> list[str]:
    """Read names of GROUPS, separated by commas. Raises Invalid."""
    names = list(dict.fromkeys(name.strip() for name in said.split(",")))
    if not all(name in GROUPS for name in names):
        raise _invalid_field(
            "group_by", f"Must be any of {', '.join(GROUPS)}, separated by commas."
        )
    return names


def sum_by_groups(
    rows: "QuerySet[UsageRecord]", groups: Sequence[str], *, most: int | None = None
) -> list[dict[str, Any]]:
    """Return a row for each group: its fields, `calls` and SUMS.

    `groups` are names of OPERATORS_GROUPS. The newest day comes first, then most tokens. One query.
    Raises Invalid for more than `most` groups, MAX_GROUPS if nothing is said.
    """
    most = MAX_GROUPS if most is None else most
    fields = [OPERATORS_GROUPS[name] for name in groups]
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
    found = list(summed[: most + 1])
    if len(found) > most:
        raise _invalid_field(
            "group_by", f"There are more than {most:,} groups. Ask for fewer days."
        )
    return [_row(each, fields) for each in found]


def _row(found: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    named = {name: found[name] for name in (*fields, "calls")}
    sums = {name: found[f"{name}_sum"] for name in SUMS}
    return named | sums | {"cost": f"{sums['cost']:.8f}"}


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _day(name: str, said: str | None) -> date | None:
    """Parse a day, not so early or late that Python knows none before or after it."""
    try:
        day = date.fromisoformat(said) if said else None
    except ValueError:
        raise _invalid_field(name, "Must be a date such as 2031-12-31.") from None
    if day and day.year not in YEARS:
        raise _invalid_field(name, f"Must be in the years {YEARS[0]} to {YEARS[-1]}.")
    return day


def _id(name: str, said: str) -> UUID:
    try:
        return UUID(said)
    except ValueError:
        raise _invalid_field(name, "Must be a UUID.") from None


def _invalid_field(name: str, text: str) -> Invalid:
    return Invalid(f"{name}: {text}", fields={name: [text]})
