"""Test the admin's pages of usage and budgets."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client

from accounts.models import User
from accounts.services import rotate_api_key
from engine.provider.model import Usage
from providers.budgets import reservations
from providers.models import Budget, BudgetCounter, UsageRecord
from providers.tests.budgets import budget_subject, new_budget, tokens
from providers.usage import ledger
from providers.usage.chart import HEIGHT, WIDTH, chart_of
from tests.personas import OPERATOR

BY_DAY = "/admin/providers/usagerecord/by-day/"
BUDGETS = "/admin/providers/budget/"


@pytest.fixture
def operator(db):
    client = Client()
    client.force_login(User.objects.create_superuser("operator@example.com"))
    return client


@pytest.fixture
def used(alice, mallory, new_model):
    """Record calls of two organizations, one of them yesterday."""
    model = new_model("m1", price_in=Decimal(1))
    ledger.record(model, Usage(1_234, 56), organization_id=alice.organization.pk)
    row = ledger.record(model, Usage(777, 3), organization_id=mallory.organization.pk)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    UsageRecord.objects.filter(pk=row.pk).update(created_at=yesterday)


def page_of(client, path, **said):
    answer = client.get(path, said)
    assert answer.status_code == 200
    return answer.content.decode()


def test_shows_usage_as_a_chart_and_tables(operator, used):
    page = page_of(operator, BY_DAY)
    assert "1 calls, 1234 + 56 tokens" in page
    assert "1 calls, 777 + 3 tokens" in page
    assert len(re.findall(r"<rect ", page)) == 2 * 30
    assert "0.00201100" in page
    assert BY_DAY in page_of(operator, "/admin/providers/usagerecord/")


def test_loads_nothing_from_elsewhere(operator, used):
    page = page_of(operator, BY_DAY)
    chart = page[page.index("<svg viewBox") : page.index("</svg>", page.index("<svg viewBox"))]
    assert "http" not in chart
    assert not re.findall(r"<script[^>]+src=\"https?:", page)


def test_shows_one_organization_or_other_days(operator, used, alice):
    page = page_of(operator, BY_DAY, organization=alice.organization.slug)
    assert "1234 + 56" in page
    assert "777 + 3" not in page
    today = str(datetime.now(UTC).date())
    assert "777 + 3" not in page_of(operator, BY_DAY, **{"from": today})
    assert "No usage in this period." in page_of(operator, BY_DAY, organization="absent")


def test_senseless_dates_are_told(operator):
    assert "as 2031-12-31" in page_of(operator, BY_DAY, **{"from": "soon"})


def test_is_for_operators(alice):
    client = Client()
    client.force_login(alice.user)
    assert client.get(BY_DAY).status_code == 302


def test_a_budget_made_here_counts_and_holds(operator, alice, new_model):
    who = {"organization_id": alice.organization.pk, "user_id": alice.user.pk}
    ledger.record(new_model("m"), Usage(30, 10), **who)
    body = {
        "organization": str(alice.organization.pk),
        "scope": "organization",
        "period": "month",
        "unit": "tokens",
        "limit": "1000",
    }
    assert operator.post(f"{BUDGETS}add/", body).status_code == 302
    assert BudgetCounter.objects.get().used == 40
    assert "40tokens(4%)" in page_of(operator, BUDGETS).replace("\n", "").replace(" ", "")
    again = operator.post(f"{BUDGETS}add/", body)
    assert again.status_code == 200, "there is one already: the form says so"


def test_only_the_limit_of_a_budget_changes(operator, alice):
    budget = new_budget(alice, 10)
    body = {"limit": "20", "scope": "user"}
    assert operator.post(f"{BUDGETS}{budget.pk}/change/", body).status_code == 302
    budget.refresh_from_db()
    assert (int(budget.limit), budget.scope) == (20, "organization")


def test_a_budget_of_a_rotated_key_is_its_lines(operator, alice):
    key, _ = alice.new_key()
    successor, _ = rotate_api_key(key, overlap=timedelta(hours=1), by=OPERATOR)
    body = {
        "organization": str(alice.organization.pk),
        "scope": "key",
        "key": str(successor.pk),
        "period": "day",
        "unit": "tokens",
        "limit": "5",
    }
    assert operator.post(f"{BUDGETS}add/", body).status_code == 302
    assert Budget.objects.get().subject == str(key.pk)


def test_a_budgets_subject_is_one_of_the_organization(operator, alice, bob, mallory):
    body = {
        "organization": str(alice.organization.pk),
        "scope": "user",
        "user": str(mallory.user.pk),
        "period": "day",
        "unit": "tokens",
        "limit": "5",
    }
    refused = operator.post(f"{BUDGETS}add/", body)
    assert "belongs to another organization" in refused.content.decode()
    body["user"] = str(bob.user.pk)
    assert operator.post(f"{BUDGETS}add/", body).status_code == 302
    assert Budget.objects.get().subject == str(bob.user.pk)
    assert "bob@example.com" in page_of(operator, BUDGETS)


def test_lists_many_budgets_at_once(operator, alice, django_assert_max_num_queries):
    for scope in ("organization", "user", "key", "guest"):
        new_budget(alice, 10, scope=scope)
    reservations.count(budget_subject(alice), tokens(4))
    with django_assert_max_num_queries(12):
        page_of(operator, BUDGETS)


# -- The chart -----------------------------------------------------------------------------------


def test_bars_stand_at_their_days_and_are_to_scale():
    rows = [
        {"day": date(2030, 1, 1), "calls": 1, "prompt_tokens": 40, "completion_tokens": 10},
        {"day": date(2030, 1, 3), "calls": 2, "prompt_tokens": 0, "completion_tokens": 100},
    ]
    chart = chart_of(rows, date(2030, 1, 1), date(2030, 1, 4))
    assert chart.top_tokens == 100
    first, second, third, _ = chart.bars
    assert [bar.x for bar in chart.bars] == [n * WIDTH / 4 for n in range(4)]
    assert (first.prompt_height, first.completion_height) == (0.4 * HEIGHT, 0.1 * HEIGHT)
    assert first.completion_y + first.completion_height == first.prompt_y
    assert first.prompt_y + first.prompt_height == HEIGHT
    assert (second.calls, second.prompt_height, second.completion_height) == (0, 0, 0)
    assert third.completion_y == 0


@pytest.mark.parametrize(("most", "top"), [(0, 10), (10, 10), (11, 20), (21, 50), (101, 200)])
def test_the_scale_ends_at_a_round_number(most, top):
    rows = [{"day": date(2030, 1, 1), "prompt_tokens": most, "completion_tokens": 0}]
    assert chart_of(rows, date(2030, 1, 1), date(2030, 1, 1)).top_tokens == top
