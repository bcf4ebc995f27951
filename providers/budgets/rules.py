"""What budgets say, without a database: whose they are, which of them count, when they begin anew.

Periods are days and months of UTC. Refuses to say how much a budget holds or what others used of
it: whoever is refused may be a guest.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from amber.lib.errors import RateLimited
from providers.models import BudgetPeriod, BudgetScope, BudgetUnit

HELD_RETRY_SECONDS: Final = 10
"""When to ask again if only what others have reserved is in the way: a usual turn is over by then."""

_SHOWN_SCOPES: Final = {
    BudgetScope.ORGANIZATION: "the organization",
    BudgetScope.USER: "this user",
    BudgetScope.KEY: "this API key",
    BudgetScope.ASSISTANT: "this assistant",
    BudgetScope.GUEST: "this guest",
}
_SHOWN_UNITS: Final = {BudgetUnit.TOKENS: "tokens", BudgetUnit.MONEY: "money"}


@dataclass(frozen=True, slots=True)
class BudgetSubject:
    """On whose account a call goes; None where nobody is."""

    organization_id: UUID
    user_id: UUID | None = None
    api_key_id: UUID | None = None
    guest_id: str | None = None
    assistant_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Spending:
    """What a call uses, or may use. `money` is in the currency of the prices."""

    tokens: int
    money: Decimal

    def of(self, unit: str) -> Decimal:
        return Decimal(self.tokens) if unit == BudgetUnit.TOKENS else self.money


@dataclass(frozen=True, slots=True)
class Applying:
    """A budget that applies to a spender, who is `subject` in it."""

    budget_id: UUID
    scope: str
    period: str
    unit: str
    limit: Decimal
    subject: str
    is_named: bool = False
    is_of_assistant: bool = False


def narrowest(found: Iterable[Applying]) -> list[Applying]:
    """One for each scope, period and unit: a named one before one of an assistant's guests, and
    that before one for each. In the order in which their counters are locked."""
    kept: dict[tuple[str, str, str], Applying] = {}
    for each in sorted(found, key=lambda each: (each.is_named, each.is_of_assistant)):
        kept[each.scope, each.period, each.unit] = each
    return sorted(kept.values(), key=lambda each: each.budget_id)


def period_start(period: str, now: datetime) -> date:
    today = now.astimezone(UTC).date()
    return today if period == BudgetPeriod.DAY else today.replace(day=1)


def period_start_at(period: str, now: datetime) -> datetime:
    return datetime.combine(period_start(period, now), time(), UTC)


def period_end(period: str, now: datetime) -> datetime:
    """When the budget begins anew."""
    start = period_start(period, now)
    if period == BudgetPeriod.DAY:
        after = start + timedelta(days=1)
    else:
        after = (start + timedelta(days=31)).replace(day=1)
    return datetime.combine(after, time(), UTC)


def refusal(refused: Applying, *, is_only_held: bool, now: datetime) -> RateLimited:
    """`is_only_held`: it would do if the calls under way used nothing."""
    end = period_end(refused.period, now)
    left_seconds = int((end - now).total_seconds()) + 1
    whose = _SHOWN_SCOPES[BudgetScope(refused.scope)]
    name = (
        f"The {_SHOWN_UNITS[BudgetUnit(refused.unit)]} budget of {whose} for this {refused.period}"
    )
    what = "is held by answers under way" if is_only_held else "does not afford this"
    return RateLimited(
        f"{name} {what}. It begins anew at {end:%Y-%m-%dT%H:%M:%SZ}.",
        code="budget_exceeded",
        retry_after_seconds=min(HELD_RETRY_SECONDS, left_seconds) if is_only_held else left_seconds,
    )
