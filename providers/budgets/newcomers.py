"""Give an organization that somebody has made for themselves, where sign-up is open, a small budget.

Registers itself with `accounts.registry`. Part of the caller's transaction, and nobody's act: it is not recorded.
"""

from uuid import UUID

from django.conf import settings

from accounts.registry import receive_newcomer
from providers.models import Budget, BudgetPeriod, BudgetScope, BudgetUnit


def _give_first_budget(organization_id: UUID) -> None:
    tokens = settings.AMBER_NEW_ORGANIZATION_TOKENS
    if settings.AMBER_OPEN_SIGNUP and tokens:
        Budget.objects.create(
            organization_id=organization_id,
            scope=BudgetScope.ORGANIZATION,
            period=BudgetPeriod.DAY,
            unit=BudgetUnit.TOKENS,
            limit=tokens,
            by_operator=True,
        )


receive_newcomer.register(_give_first_budget)
