"""What an organization begins with that somebody has made for themselves, and how many one person owns."""

from typing import Any

import pytest

from accounts import services
from accounts.models import User
from amber.lib.errors import Conflict
from providers.models import Budget

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def opened(settings: Any) -> None:
    settings.AMBER_OPEN_SIGNUP = True


def budgets_of(user: User, **which: object) -> list[tuple[str, str, int, bool]]:
    """Return the budgets of the organizations that the user owns."""
    found = Budget.objects.filter(organization__memberships__user=user, **which)
    return [(each.period, each.unit, int(each.limit), each.by_operator) for each in found]


def test_what_a_stranger_makes_has_a_small_budget_that_only_operators_change(opened):
    granted = [("day", "tokens", 200_000, True)]
    stranger = services.sign_up("stranger@example.com")
    assert budgets_of(stranger) == granted
    services.create_organization(stranger, name="Another")
    assert budgets_of(stranger, organization__personal=False) == granted


def test_what_an_operator_makes_or_an_invited_person_has_no_budget(settings, opened):
    operator = services.sign_up("op@example.com", operator=True)
    services.create_organization(operator, name="Ours")
    settings.AMBER_OPEN_SIGNUP = False
    invited = services.sign_up("invited@example.com")
    assert budgets_of(operator) == budgets_of(invited) == []


def test_a_person_owns_so_many_organizations_and_an_operator_any(settings):
    settings.AMBER_MAX_ORGANIZATIONS = 1
    person = services.sign_up("p@example.com")
    operator = services.sign_up("o@example.com", operator=True)
    services.create_organization(person, name="First")
    with pytest.raises(Conflict, match="limit of 1"):
        services.create_organization(person, name="Second")
    for name in ("First", "Second"):
        services.create_organization(operator, name=name)
