import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections, transaction

from accounts.key_services import rotate_api_key
from amber.lib.errors import RateLimited
from engine.provider.model import Usage
from providers.budgets import reservations
from providers.budgets.counters import forget_counters, open_counters
from providers.budgets.rules import (
    ApplicableBudget,
    keep_narrowest,
    period_end,
    period_start,
    refusal,
)
from providers.models import Budget, BudgetCounter, BudgetReservation
from providers.tests.budgets import budget_subject, held, new_budget, tokens
from providers.usage import ledger
from tests.fixtures.personas import OPERATOR


def reserve(persona, number=100, money="0", **fields):
    """Reserve tokens of this person's budgets and return the holder's id."""
    holder_id = uuid4()
    asked = tokens(number, money)
    assert reservations.reserve(
        budget_subject(persona, **fields), lambda: asked, holder_id=holder_id
    )
    return holder_id


def is_refused(persona, number=100, money="0", **fields):
    before = list(BudgetCounter.objects.values_list("reserved", flat=True))
    try:
        reserve(persona, number, money, **fields)
    except RateLimited as error:
        assert error.code == "budget_exceeded"
        assert list(BudgetCounter.objects.values_list("reserved", flat=True)) == before
        return True
    return False


def test_what_is_reserved_counts_until_it_is_released(alice):
    budget = new_budget(alice, 250)
    first, second = reserve(alice), reserve(alice)
    assert held(budget) == (0, 200)
    assert is_refused(alice)
    reservations.release([first])
    assert held(budget) == (0, 100)
    assert not is_refused(alice)
    reservations.release([second])
    reservations.release([second])
    assert held(budget) == (0, 100), "released twice, it was given back once"


def test_what_was_used_counts_for_good(alice):
    budget = new_budget(alice, 250)
    holder_id = reserve(alice)
    reservations.count(budget_subject(alice), tokens(180))
    reservations.release([holder_id])
    assert held(budget) == (180, 0)
    assert is_refused(alice)
    assert not is_refused(alice, 70)


def test_without_a_budget_nothing_is_asked(alice, mallory, django_assert_num_queries):
    new_budget(mallory, 1)

    def never():
        raise AssertionError("nobody needs an estimate")

    assert not reservations.reserve(budget_subject(alice), never, holder_id=uuid4())
    with django_assert_num_queries(0):
        assert not reservations.reserve(budget_subject(alice), never, holder_id=uuid4())
        reservations.count(budget_subject(alice), tokens(5))


def test_money_is_counted_as_money(alice):
    new_budget(alice, "1.00", unit="money")
    reserve(alice, 1_000_000, "0.60")
    assert is_refused(alice, 1, "0.41")
    assert not is_refused(alice, 1, "0.40")


def test_every_budget_that_applies_must_afford_it(alice):
    of_all = new_budget(alice, 1_000)
    of_month = new_budget(alice, 150, period="month")
    reserve(alice)
    assert is_refused(alice)
    assert held(of_all) == held(of_month) == (0, 100)


@pytest.mark.parametrize("scope", ["user", "key", "assistant", "guest"])
def test_is_kept_for_each_subject_apart(alice, bob, scope):
    new_budget(alice, 100, scope=scope)
    column = {"user": "user_id", "key": "api_key_id", "assistant": "assistant_id"}
    for subject in (uuid4(), uuid4()):
        value = str(subject) if scope == "guest" else subject
        whose = {column.get(scope, "guest_id"): value}
        reserve(alice, **whose)
        assert is_refused(alice, **whose)
    if scope != "user":
        assert not reservations.reserve(
            budget_subject(alice), lambda: tokens(999), holder_id=uuid4()
        )


def test_the_narrowest_counts(alice):
    assistant_id = uuid4()
    new_budget(alice, 10, scope="guest")
    of_assistant = new_budget(alice, 100, scope="guest", assistant_id=assistant_id)
    named = new_budget(alice, 1_000, scope="guest", subject="vip", assistant_id=assistant_id)
    reserve(alice, 11, guest_id="anna", assistant_id=assistant_id)
    assert held(of_assistant, "anna") == (0, 11)
    reserve(alice, 500, guest_id="vip", assistant_id=assistant_id)
    assert held(named, "vip") == (0, 500)
    assert is_refused(alice, 11, guest_id="anna", assistant_id=uuid4())


def test_a_budget_of_a_key_outlives_its_rotation(alice):
    key, _ = alice.new_key()
    new_budget(alice, 150, scope="key", subject=str(key.pk))
    reserve(alice, api_key_id=key.pk)
    successor, _ = rotate_api_key(key, overlap=timedelta(hours=1), by=OPERATOR)
    third, _ = rotate_api_key(successor, overlap=timedelta(hours=1), by=OPERATOR)
    assert is_refused(alice, api_key_id=successor.pk)
    assert is_refused(alice, api_key_id=third.pk)


def test_another_organization_has_its_own(alice, mallory):
    new_budget(alice, 1)
    assert is_refused(alice)
    assert not reservations.reserve(budget_subject(mallory), lambda: tokens(100), holder_id=uuid4())


def test_holds_for_the_next_call_what_that_may_use(alice):
    budget = new_budget(alice, 300)
    holder_id = reserve(alice)
    reservations.count(budget_subject(alice), tokens(60))
    assert reservations.renew(budget_subject(alice), tokens(200), holder_id=holder_id) is None
    assert held(budget) == (60, 200)
    reservations.count(budget_subject(alice), tokens(150))
    error = reservations.renew(budget_subject(alice), tokens(200), holder_id=holder_id)
    assert error is not None
    assert error.code == "budget_exceeded"
    assert held(budget) == (210, 200), "what was held stays so until the turn's end"


def test_counts_every_call_in_the_ledger(alice, new_model, new_embedding_model):
    budget = new_budget(alice, 100)
    who = {"organization_id": alice.organization.pk, "user_id": alice.user.pk}
    ledger.record(new_model("m"), Usage(5, 2), **who)
    ledger.record(new_embedding_model("e"), Usage(10), **who)
    assert held(budget) == (17, 0)


def test_a_new_budget_counts_what_was_used_already(alice, bob, new_model):
    model = new_model("m", price_in=Decimal(500_000))
    key, _ = alice.new_key()
    successor, _ = rotate_api_key(key, overlap=timedelta(hours=1), by=OPERATOR)
    key_ids: list[UUID | None] = [key.pk, successor.pk, None]
    for who, key_id in zip((alice, alice, bob), key_ids, strict=True):
        ledger.record(
            model,
            Usage(4, 0),
            organization_id=who.organization.pk,
            user_id=who.user.pk,
            api_key_id=key_id,
        )
    of_all = new_budget(alice, 20)
    of_each = new_budget(alice, 20, scope="user", unit="money")
    of_key = new_budget(alice, 20, scope="key", subject=str(key.pk))
    for budget in (of_all, of_each, of_key):
        open_counters(budget)
    assert held(of_all) == (12, 0)
    assert held(of_each, str(alice.user.pk)) == (4, 0)
    assert held(of_each, str(bob.user.pk)) == (2, 0)
    assert held(of_key, str(key.pk)) == (8, 0)


def test_begins_anew_with_its_period(alice, monkeypatch):
    new_budget(alice, 100)
    reserve(alice)
    assert is_refused(alice)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    monkeypatch.setattr("providers.budgets.reservations.timezone.now", lambda: tomorrow)
    assert not is_refused(alice)


def test_old_counters_are_forgotten(alice):
    budget = new_budget(alice, 100)
    day = datetime.now(UTC).date() - timedelta(days=71)
    BudgetCounter.objects.create(budget=budget, period_start=day)
    reserve(alice)
    forget_counters()
    assert BudgetCounter.objects.get().period_start == datetime.now(UTC).date()


def test_deleting_a_budget_takes_its_counters(alice):
    budget = new_budget(alice, 100)
    holder_id = reserve(alice)
    Budget.objects.filter(pk=budget.pk).delete()
    assert not BudgetCounter.objects.exists()
    assert not BudgetReservation.objects.exists()
    reservations.release([holder_id])


@pytest.mark.django_db(transaction=True)
def test_is_part_of_the_callers_transaction(alice):
    budget = new_budget(alice, 100)
    with pytest.raises(RuntimeError), transaction.atomic():
        reserve(alice)
        raise RuntimeError
    assert not BudgetCounter.objects.filter(budget=budget).exists()


def at_once(number, work):
    """Run `work(n)` in as many threads, which begin together; return what they returned."""
    start, found = threading.Barrier(number), []

    def run(n):
        try:
            start.wait(30)
            found.append(work(n))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == number, "somebody failed"
    return found


@pytest.mark.django_db(transaction=True)
def test_many_at_once_get_no_more_than_there_is(alice):
    budgets_ = [new_budget(alice, 1_000, period=period) for period in ("day", "month")]
    passed = at_once(30, lambda _: not is_refused_quietly(alice))
    assert sum(passed) == 10
    assert [held(budget) for budget in budgets_] == [(0, 1_000)] * 2


@pytest.mark.django_db(transaction=True)
def test_those_who_use_release_and_reserve_at_once_never_wait_for_each_other_in_a_ring(alice):
    """The budgets are of any age; some counters exist and others are created on the way."""
    of_month = new_budget(alice, 10_000, period="month")
    of_user = new_budget(alice, 10_000, scope="user")

    def live(n):
        for _ in range(5):
            user_id = uuid4() if n % 2 else alice.user.pk
            with transaction.atomic():
                holder_id = reserve(alice, 10, user_id=user_id)
            with transaction.atomic():
                reservations.count(budget_subject(alice, user_id=user_id), tokens(7))
                reservations.release([holder_id])
        return True

    assert all(at_once(10, live))
    assert held(of_month) == (350, 0)
    assert held(of_user, str(alice.user.pk)) == (175, 0)


def is_refused_quietly(persona):
    try:
        with transaction.atomic():
            reserve(persona)
    except RateLimited:
        return True
    return False


# -- Pure ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("period", "now", "start", "end"),
    [
        ("day", "2030-02-28T23:59:59+00:00", "2030-02-28", "2030-03-01T00:00:00+00:00"),
        ("day", "2030-03-01T00:30:00+02:00", "2030-02-28", "2030-03-01T00:00:00+00:00"),
        ("month", "2030-12-31T12:00:00+00:00", "2030-12-01", "2031-01-01T00:00:00+00:00"),
        ("month", "2030-01-01T00:00:00+00:00", "2030-01-01", "2030-02-01T00:00:00+00:00"),
    ],
)
def test_periods_are_of_utc(period, now, start, end):
    moment = datetime.fromisoformat(now)
    assert period_start(period, moment).isoformat() == start
    assert period_end(period, moment).isoformat() == end


def applying(**fields):
    defaults: dict[str, Any] = {
        "scope": "guest",
        "period": "day",
        "unit": "tokens",
        "limit": 1,
        "subject": "s",
    }
    return ApplicableBudget(budget_id=uuid4(), **(defaults | fields))


def test_different_periods_and_units_all_count():
    each = [applying(), applying(period="month"), applying(unit="money"), applying(scope="user")]
    assert sorted(keep_narrowest(each), key=str) == sorted(each, key=str)


def test_a_refusal_says_which_budget_and_until_when_and_no_amounts():
    now = datetime(2030, 1, 1, 23, 59, 0, tzinfo=UTC)
    error = refusal(applying(limit=Decimal(777)), is_only_held=False, now=now)
    assert error.message == (
        "The daily token budget of this guest is not enough for this."
        " It resets at 2030-01-02T00:00:00Z."
    )
    assert error.retry_after_seconds == 61
    soon = refusal(applying(), is_only_held=True, now=now)
    assert soon.retry_after_seconds == 10


def test_the_database_is_asked_little(alice, django_assert_max_num_queries):
    new_budget(alice, 1_000)
    reserve(alice)
    with django_assert_max_num_queries(5):  # budgets, savepoint, counters, reservations, end
        reserve(alice)
