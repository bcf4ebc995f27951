"""Keep the counters of budgets: a row for each budget, subject and period, changed under its lock.

A new budget begins with what the ledger holds for the current period. This module does not judge:
`providers.budgets.reservations` compares the counters with the limits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import (
    Case,
    DateField,
    F,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.utils import timezone

from amber.lib.ids import new_id
from providers.budgets.rules import ApplicableBudget, Spending, period_start, period_start_at
from providers.budgets.scopes import SCOPES
from providers.models import (
    Budget,
    BudgetCounter,
    BudgetPeriod,
    UsageRecord,
    made_between,
)

KEPT: Final = timedelta(days=70)
"""Long enough for this month and the last to be looked at."""

NOTHING: Final = Spending(0, Decimal(0))

# The upsert waits for the lock of each counter, so what RETURNING gives includes every change that
# was committed before; comparing it with a limit is then safe until this transaction ends.
_CHANGE_SQL: Final = """
INSERT INTO providers_budgetcounter AS counter
    (id, created_at, updated_at, budget_id, subject, period_start, used, reserved)
SELECT id, now(), now(), budget_id, subject, period_start, used, reserved
FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::date[], %s::numeric[], %s::numeric[])
    AS change (id, budget_id, subject, period_start, used, reserved)
ON CONFLICT (budget_id, subject, period_start) DO UPDATE SET
    used = counter.used + EXCLUDED.used,
    reserved = counter.reserved + EXCLUDED.reserved,
    updated_at = now()
RETURNING id, budget_id, used, reserved
"""


@dataclass(frozen=True, slots=True)
class CounterAmounts:
    """A counter after a change."""

    pk: UUID
    used: Decimal
    reserved: Decimal


def change_counters(
    applying: Sequence[ApplicableBudget],
    now: datetime,
    *,
    used: Spending = NOTHING,
    reserved: Spending = NOTHING,
) -> dict[UUID, CounterAmounts]:
    """Add to the counters of these budgets and return their new amounts, by budget.

    One statement, which creates missing counters. The rows stay locked until the transaction
    ends; they are locked in the order given, which all callers must share, or they deadlock.
    """
    if not applying:
        return {}
    columns: tuple[list[object], ...] = (
        [new_id() for _ in applying],
        [each.budget_id for each in applying],
        [each.subject for each in applying],
        [period_start(each.period, now) for each in applying],
        [used.of(each.unit) for each in applying],
        [reserved.of(each.unit) for each in applying],
    )
    with connection.cursor() as cursor:
        cursor.execute(_CHANGE_SQL, columns)
        return {budget_id: CounterAmounts(pk, *amounts) for pk, budget_id, *amounts in cursor}


def counters_of(budgets: Sequence[Budget], now: datetime) -> dict[UUID, BudgetCounter]:
    """Return the counters of the current periods, by budget. One query.

    A budget that applies to each subject separately has none.
    """
    starts = {budget.pk: period_start(budget.period, now) for budget in budgets}
    rows = BudgetCounter.objects.filter(
        budget__in=budgets,
        subject=F("budget__subject"),
        period_start__in=set(starts.values()),
    )
    return {row.budget_id: row for row in rows if row.period_start == starts[row.budget_id]}


def annotate_used(budgets: QuerySet[Budget]) -> QuerySet[Budget]:
    """Annotate each budget with `used_now`, what is used of its current period.

    None where nothing was used, and for a budget that applies to each subject separately.
    """
    now = timezone.now()
    starts = [
        When(period=period, then=Value(period_start(period, now))) for period in BudgetPeriod.values
    ]
    counters = BudgetCounter.objects.filter(
        budget=OuterRef("pk"),
        subject=OuterRef("subject"),
        period_start=OuterRef("starts"),
    )
    dated = budgets.annotate(starts=Case(*starts, output_field=DateField()))
    return dated.annotate(used_now=Subquery(counters.values("used")))


def open_counters(budget: Budget) -> None:
    """Count what the subjects of a new budget have used already. One query over the period."""
    now = timezone.now()
    BudgetCounter.objects.bulk_create(
        (
            BudgetCounter(
                budget=budget,
                subject=subject,
                period_start=period_start(budget.period, now),
                used=used,
            )
            for subject, used in _sum_used(budget, period_start_at(budget.period, now)).items()
        ),
        ignore_conflicts=True,
    )


def forget_counters() -> None:
    """Delete the counters of periods that ended more than KEPT ago."""
    least = timezone.now().date() - KEPT
    BudgetCounter.objects.filter(period_start__lt=least).delete()


def _sum_used(budget: Budget, since: datetime) -> dict[str, Decimal]:
    """Sum what was used since then, by subject, from the ledger."""
    rows = UsageRecord.objects.filter(
        made_between(since, None), organization_id=budget.organization_id
    )
    if budget.assistant_id is not None:
        rows = rows.filter(assistant_id=budget.assistant_id)
    amount = UsageRecord.objects.sum_used(budget.unit)
    facts = SCOPES[budget.scope]
    column = facts.column
    if column is None:
        return {"": Decimal(rows.aggregate(amount=amount)["amount"] or 0)}
    known = rows.filter(**{f"{column}__isnull": False})
    found = list(known.values_list(column).annotate(amount=amount))
    firsts = facts.first_ids([pk for pk, _ in found]) if facts.first_ids else {}
    totals: dict[str, Decimal] = {}
    for subject, used in found:
        name = str(firsts.get(subject, subject))
        if budget.subject in ("", name):
            totals[name] = totals.get(name, Decimal(0)) + Decimal(used)
    return totals
