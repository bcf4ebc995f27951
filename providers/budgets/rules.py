"""Decide without a database which budgets count, when they reset, and how a refusal reads.

Periods are days and months of UTC. A refusal never says how much a budget holds or what others
used of it: whoever is refused may be a guest.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from amber.lib.errors import RateLimited
from providers.budgets.scopes import SCOPES
from providers.models import BudgetPeriod, BudgetUnit

HELD_RETRY_SECONDS: Final = 10
"""When to retry if only others' reservations are in the way: a usual turn is over by then."""

_SHOWN_UNITS: Final = {BudgetUnit.TOKENS: "token", BudgetUnit.MONEY: "money"}
_SHOWN_PERIODS: Final = {BudgetPeriod.DAY: "daily", BudgetPeriod.MONTH: "monthly"}


@dataclass(frozen=True, slots=True)
class Spending:
    """What a call uses, or may use. `money` is in the currency of the prices."""

    tokens: int
    money: Decimal

    def of(self, unit: str) -> Decimal:
        return Decimal(self.tokens) if unit == BudgetUnit.TOKENS else self.money


@dataclass(frozen=True, slots=True)
class ApplicableBudget:
    """A budget that applies to a call; `subject` is who the call is counted for."""

    budget_id: UUID
    scope: str
    period: str
    unit: str
    limit: Decimal
    subject: str
    is_named: bool = False
    is_of_assistant: bool = False


def keep_narrowest(found: Iterable[ApplicableBudget]) -> list[ApplicableBudget]:
    """Keep one budget for each scope, period and unit, in the order of locking their counters.

    A budget of a named subject wins over one of an assistant's guests, and that over one that
    applies to each subject.
    """
    kept: dict[tuple[str, str, str], ApplicableBudget] = {}
    for each in sorted(found, key=lambda each: (each.is_named, each.is_of_assistant)):
        kept[each.scope, each.period, each.unit] = each
    return sorted(kept.values(), key=lambda each: each.budget_id)


def period_start(period: str, now: datetime) -> date:
    today = now.astimezone(UTC).date()
    return today if period == BudgetPeriod.DAY else today.replace(day=1)


def period_start_at(period: str, now: datetime) -> datetime:
    return datetime.combine(period_start(period, now), time(), UTC)


def period_end(period: str, now: datetime) -> datetime:
    """Return when the budget resets."""
    start = period_start(period, now)
    if period == BudgetPeriod.DAY:
        after = start + timedelta(days=1)
    else:
        after = (start + timedelta(days=31)).replace(day=1)
    return datetime.combine(after, time(), UTC)


def refusal(refused: ApplicableBudget, *, is_only_held: bool, now: datetime) -> RateLimited:
    """Return the error to raise.

    `is_only_held`: the budget would be enough if the calls in progress used nothing.
    """
    end = period_end(refused.period, now)
    left_seconds = int((end - now).total_seconds()) + 1
    whose = SCOPES[refused.scope].shown
    unit = _SHOWN_UNITS[BudgetUnit(refused.unit)]
    name = f"The {_SHOWN_PERIODS[BudgetPeriod(refused.period)]} {unit} budget of {whose}"
    what = "is reserved by answers in progress" if is_only_held else "is not enough for this"
    return RateLimited(
        f"{name} {what}. It resets at {end:%Y-%m-%dT%H:%M:%SZ}.",
        code="budget_exceeded",
        retry_after_seconds=min(HELD_RETRY_SECONDS, left_seconds) if is_only_held else left_seconds,
    )
