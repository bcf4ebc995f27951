"""Create the budgets that tests begin with."""

from decimal import Decimal
from typing import Any

import pytest

from providers.budgets import reservations
from providers.budgets.rules import Spending
from providers.budgets.scopes import BudgetSubject
from providers.models import Budget, BudgetCounter
from tests.fixtures.personas import Persona


def new_budget(persona: Persona, limit: int | str, **fields: Any) -> Budget:
    """Create a budget of the organization, in tokens a day by default; this process knows of it."""
    reservations.forget_absence()
    fields = {"scope": "organization", "period": "day", "unit": "tokens"} | fields
    return Budget.objects.create(organization=persona.organization, limit=Decimal(limit), **fields)


def budget_subject(persona: Persona, **fields: Any) -> BudgetSubject:
    return BudgetSubject(persona.organization.pk, **({"user_id": persona.user.pk} | fields))


def tokens(number: int, money: str = "0") -> Spending:
    return Spending(number, Decimal(money))


def held(budget: Budget, subject: str = "") -> tuple[int, int]:
    """Return what is used and reserved, in whole numbers."""
    counter = BudgetCounter.objects.get(budget=budget, subject=subject)
    return int(counter.used), int(counter.reserved)


def refused(excinfo: "pytest.ExceptionInfo[Any]") -> tuple[int, str]:
    return excinfo.value.status, excinfo.value.code
