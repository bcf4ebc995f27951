"""Test that owners are warned of budgets by mail: at 80%, and when they refuse questions, once each."""

from decimal import Decimal
from uuid import uuid4

import pytest

from accounts.mail import texts
from accounts.mail.outbox import open_details
from accounts.models import Membership, OutgoingMail
from amber.lib.errors import RateLimited
from providers.budgets import notices, reservations, rules
from providers.budgets.notices import warn_of_refusals
from providers.budgets.scopes import SCOPES
from providers.models import BudgetPeriod, BudgetScope, BudgetUnit
from providers.tests.budgets import budget_subject, new_budget, tokens

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mailing(settings):
    settings.AMBER_SENDS_MAIL = True
    notices._noted.clear()
    yield
    warn_of_refusals()


def use(persona, number, **fields):
    reservations.count(budget_subject(persona, **fields), tokens(number))


def shares() -> list[int]:
    return [open_details(mail)["share"] for mail in OutgoingMail.objects.order_by("created_at")]


def test_owners_are_warned_at_each_share_once(alice, bob):
    new_budget(alice, 1_000)
    for used, told in ((790, []), (10, [80]), (100, [80]), (100, [80, 100]), (50, [80, 100])):
        use(alice, used)
        assert shares() == told
    assert {mail.address for mail in OutgoingMail.objects.all()} == {alice.user.email}
    details = open_details(OutgoingMail.objects.earliest("created_at"))
    amounts = [int(Decimal(details[name])) for name in ("used", "limit")]
    assert (amounts, details["unit"]) == ([800, 1_000], "tokens")


def test_every_owner_is_and_who_wants_no_notices_is_not(alice, bob):
    Membership.objects.filter(user=bob.user).update(role="owner")
    alice.user.mail_notices = False
    alice.user.save()
    new_budget(alice, 100)
    use(alice, 90)
    assert [mail.address for mail in OutgoingMail.objects.all()] == [bob.user.email]


def test_a_leap_over_both_shares_is_told_once(alice):
    new_budget(alice, 100)
    use(alice, 500)
    assert shares() == [100]


def test_a_budget_of_each_member_is_told_once_and_one_of_guests_never(alice, bob):
    new_budget(alice, 100, scope="user")
    new_budget(alice, 100, scope="guest")
    use(alice, 85)
    use(alice, 85, user_id=bob.user.pk)
    use(alice, 85, user_id=None, guest_id="web:1")
    assert shares() == [80]


def test_a_raised_limit_tells_no_share_again_in_the_period(alice):
    budget = new_budget(alice, 100)
    use(alice, 85)
    budget.limit = 200
    budget.save()
    use(alice, 80)
    assert shares() == [80]


def test_what_a_budget_refuses_is_told_although_its_use_is_below(alice):
    new_budget(alice, 100)
    use(alice, 30)
    for _ in range(3):
        with pytest.raises(RateLimited):
            reservations.reserve(budget_subject(alice), lambda: tokens(90), holder_id=uuid4())
        notices._noted.clear()
    assert shares() == []
    warn_of_refusals()
    warn_of_refusals()
    assert shares() == [100]
    assert open_details(OutgoingMail.objects.get())["used"] == "30.00000000"


def test_what_others_hold_is_no_reason_to_warn(alice):
    new_budget(alice, 100)
    reservations.reserve(budget_subject(alice), lambda: tokens(60), holder_id=uuid4())
    with pytest.raises(RateLimited):
        reservations.reserve(budget_subject(alice), lambda: tokens(60), holder_id=uuid4())
    warn_of_refusals()
    assert shares() == []


def test_without_a_mail_server_nobody_looks(alice, settings, django_assert_num_queries):
    settings.AMBER_SENDS_MAIL = False
    new_budget(alice, 100)
    use(alice, 10)
    with django_assert_num_queries(2):
        use(alice, 85)


def test_every_kind_of_budget_has_its_words():
    assert set(texts._BUDGETS) == set(rules._SHOWN_PERIODS) == set(BudgetPeriod)
    assert set(rules._SHOWN_UNITS) == set(BudgetUnit)
    assert set(SCOPES) == set(BudgetScope)
    assert set(texts._WHOSE) == set(BudgetScope) - {BudgetScope.GUEST}  # of guests nobody is told
