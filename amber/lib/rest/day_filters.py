"""Limit rows to the days that somebody asks for, in UTC and both included, and to equal columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Self, TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils import timezone
from rest_framework import serializers

from amber.lib.errors import Invalid

MAX_DAYS: Final = 366
DEFAULT_DAYS: Final = 30
"""The span of a report when no dates are given."""

_Row = TypeVar("_Row", bound=Model)


class DayFields(serializers.Serializer[Any]):
    """Reads the days `from` and `to` of a query string."""

    def get_fields(self) -> dict[str, Any]:
        """Add the days; `from` cannot be the name of an attribute."""
        return super().get_fields() | {
            "from": serializers.DateField(required=False, help_text="The first day, in UTC."),
            "to": serializers.DateField(required=False, help_text="The last day, in UTC."),
        }


@dataclass(frozen=True, slots=True)
class DayFilters:
    """The rows to list, count or sum; no day is no bound."""

    since: date | None = None
    until: date | None = None
    equal: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self:
        """Return the filters that `DayFields` and fields beside it have read."""
        equal = {name: value for name, value in said.items() if name not in ("from", "to")}
        return cls(said.get("from"), said.get("to"), equal)

    def with_both_dates(self) -> Self:
        """Return filters with both dates: the last DEFAULT_DAYS if none are given.

        Raises Invalid for more than MAX_DAYS.
        """
        until = self.until or timezone.now().date()
        since = self.since or date.fromordinal(max(1, until.toordinal() - DEFAULT_DAYS + 1))
        if (until - since).days >= MAX_DAYS:
            raise Invalid(fields={"from": [f"A report covers at most {MAX_DAYS} days."]})
        return replace(self, since=since, until=until)

    def apply_to(self, rows: QuerySet[_Row]) -> QuerySet[_Row]:
        since = None if self.since is None else _midnight(self.since)
        # Python knows no day after its last.
        until = None
        if self.until is not None and self.until < date.max:
            until = _midnight(self.until + timedelta(days=1))
        return rows.filter(self._made_between(since, until), **self.equal)

    def _made_between(self, since: datetime | None, until: datetime | None) -> Q:
        """Return the condition for rows from `since` to before `until`; None is no bound."""
        from_then = Q() if since is None else Q(created_at__gte=since)
        return from_then if until is None else from_then & Q(created_at__lt=until)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
