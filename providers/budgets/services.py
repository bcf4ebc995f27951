"""Create, change and delete budgets: each in one transaction, on rows the caller may reach."""

from decimal import Decimal
from uuid import UUID

from django.db import IntegrityError, transaction

from accounts.audit.recording import Detail, record
from accounts.audit_actions import AuditAction
from accounts.models import ApiKey
from accounts.principal import Actor
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
    by: Actor,
    subject: str = "",
    assistant_id: UUID | None = None,
) -> Budget:
    """Create a budget that counts what its subjects have used already in the current period.

    Raises Conflict if there is one of the same scope, subject, assistant, period and unit.
    """
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
            _record(by, AuditAction.BUDGET_MADE, budget)
    except IntegrityError:
        raise Conflict(
            "There is already a budget of this scope, subject, period and unit. Change its limit."
        )
    reservations.forget_absence()
    return budget


def subject_of(scope: str, subject: str) -> str:
    """Return the subject as it is stored: for a key, the first one that it was rotated from."""
    if scope != BudgetScope.KEY or not subject:
        return subject
    key_id = UUID(subject)
    return str(ApiKey.objects.first_ids([key_id])[key_id])


@transaction.atomic(durable=True)
def change_limit(budget: Budget, *, limit: Decimal, by: Actor) -> Budget:
    """Change the limit; answers in progress keep what they hold."""
    before, budget.limit = budget.limit, limit
    budget.save(update_fields=["limit", "updated_at"])
    _record(by, AuditAction.BUDGET_CHANGED, budget, {"before": str(before)})
    return budget


@transaction.atomic(durable=True)
def delete_budget(budget: Budget, *, by: Actor) -> None:
    """Delete the budget and its counters; other budgets of its subjects stay."""
    Budget.objects.filter(pk=budget.pk).delete()
    _record(by, AuditAction.BUDGET_REMOVED, budget)


def _record(by: Actor, action: AuditAction, budget: Budget, more: Detail | None = None) -> None:
    """Record what happened to a budget, with what it limits; a subject may be a guest's name."""
    detail = {
        "scope": budget.scope,
        "period": budget.period,
        "unit": budget.unit,
        "limit": str(budget.limit),
    }
    record(
        by, action, budget, organization_id=budget.organization_id, detail=detail | {**(more or {})}
    )
