"""Filter and sum the ledger: by day (UTC), model, kind, assistant, key or user.

    filters = UsageFilters.read(request.query_params)
    rows = filters.apply_to(UsageRecord.objects.visible_to(principal))
    sums = sum_by_groups(rows, ["day", "model"])

Postgres sums over an index of the tenant and time, so a report costs as much as its span holds, at
most MAX_DAYS. Who sees what is not decided here: the caller passes rows that are already limited.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final, Self
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from amber.lib.errors import Invalid
from amber.lib.rest.day_filters import DayFilters
from providers.models import UsageKind, UsageRecord, made_between

YEARS: Final = range(1970, 9_999)
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


class UsageFilters(DayFilters):
    """The calls to report."""

    __slots__ = ()

    @classmethod
    def read(cls, said: Mapping[str, str]) -> Self:
        """Read `from`, `to`, `model`, `kind` and ids from a query string. Raises Invalid."""
        equal: dict[str, Any] = {name: said[name] for name in ("model", "kind") if said.get(name)}
        if equal.get("kind", UsageKind.CHAT) not in UsageKind.values:
            raise Invalid(fields={"kind": [f"Must be one of {', '.join(UsageKind.values)}."]})
        equal |= {name: _id(name, said[name]) for name in _IDS if said.get(name)}
        since, until = _day("from", said.get("from")), _day("to", said.get("to"))
        if since and until and since > until:
            raise Invalid(fields={"to": ["Must not be before `from`."]})
        return cls(since, until, equal)

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

    def _made_between(self, since: datetime | None, until: datetime | None) -> Q:
        return made_between(since, until)


def read_groups(said: str) -> list[str]:
    """Read names of GROUPS, separated by commas. Raises Invalid."""
    names = list(dict.fromkeys(name.strip() for name in said.split(",")))
    if not all(name in GROUPS for name in names):
        raise Invalid(
            fields={"group_by": [f"Must be any of {', '.join(GROUPS)}, separated by commas."]}
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
        raise Invalid(
            fields={"group_by": [f"There are more than {most:,} groups. Ask for fewer days."]}
        )
    return [_row(each, fields) for each in found]


def _row(found: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    named = {name: found[name] for name in (*fields, "calls")}
    sums = {name: found[f"{name}_sum"] for name in SUMS}
    return named | sums | {"cost": f"{sums['cost']:.8f}"}


def _day(name: str, said: str | None) -> date | None:
    """Parse a day, not so early or late that Python knows none before or after it."""
    try:
        day = date.fromisoformat(said) if said else None
    except ValueError:
        raise Invalid(fields={name: ["Must be a date such as 2031-12-31."]}) from None
    if day and day.year not in YEARS:
        raise Invalid(fields={name: [f"Must be in the years {YEARS[0]} to {YEARS[-1]}."]})
    return day


def _id(name: str, said: str) -> UUID:
    try:
        return UUID(said)
    except ValueError:
        raise Invalid(fields={name: ["Must be a UUID."]}) from None
