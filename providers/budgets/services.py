"""The verbs of budgets: each one transaction, over rows that the caller was allowed to reach."""

from decimal import Decimal
from uuid import UUID

from django.db import IntegrityError, transaction

from accounts.models import ApiKey
from amber.lib.errors import Conflict
from providers.budgets import reservations
from providers.budgets.counters import open_counters
from providers.models import Budget, BudgetScope


def create_budget(
    organization_id: UUID,
    *,
    scope: str,
    period: str,
    unit: str,
    limit: Decimal,
    subject: str = "",
    assistant_id: UUID | None = None,
) -> Budget:
    """It counts what its subjects have used already in this period. Raises Conflict."""
    try:
        with transaction.atomic(durable=True):
            budget = Budget.objects.create(
                organization_id=organization_id,
                scope=scope,
                subject=subject_of(scope, subject),
                assistant_id=assistant_id,
                period=period,
                unit=unit,
                limit=limit,
            )
            open_counters(budget)
    except IntegrityError:
        raise Conflict(
            "There is a budget of this scope, subject, period and unit: change its limit."
        )
    reservations.forget_absence()
    return budget


def subject_of(scope: str, subject: str) -> str:
    """As it is stored: of a key the first that it was rotated from."""
    if scope != BudgetScope.KEY or not subject:
        return subject
    key_id = UUID(subject)
    return str(ApiKey.objects.first_ids([key_id])[key_id])


@transaction.atomic(durable=True)
def change_limit(budget: Budget, *, limit: Decimal) -> Budget:
    """Answers under way keep what they hold."""
    budget.limit = limit
    budget.save(update_fields=["limit", "updated_at"])
    return budget


@transaction.atomic(durable=True)
def delete_budget(budget: Budget) -> None:
    budget.delete()
