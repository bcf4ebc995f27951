"""Test the admin's pages of usage and budgets."""

import csv
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import translation

from accounts.key_services import rotate_api_key
from accounts.models import User
from engine.provider.model import Usage
from providers.budgets import reservations
from providers.models import Budget, BudgetCounter, UsageRecord
from providers.tests.budgets import budget_subject, new_budget, tokens
from providers.usage import ledger
from providers.usage.chart import HEIGHT, WIDTH, chart_of, scale_of
from providers.usage.figures import write_cost, write_short
from tests.fixtures.personas import OPERATOR

REPORT = "/admin/providers/usagerecord/report/"
BUDGETS = "/admin/providers/budget/"


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


def figures_of(page):
    """Return the words of the tables' cells, row by row."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page, re.DOTALL)
    return [
        [" ".join(re.sub("<[^>]+>", " ", cell).split()) for cell in re.split("</t[hd]>", row)[:-1]]
        for row in rows
    ]


def test_shows_usage_as_a_chart_and_tables(operator, used):
    page = page_of(operator, REPORT)
    assert "m1 1.3k" not in page, "below 10,000 every digit is shown"
    assert "m1 1,290" in page
    assert "m1 780" in page
    assert page.count('<rect class="series-0" x=') == 2
    assert page.count('class="catch"') == 30
    today = str(datetime.now(UTC).date())
    figures = figures_of(page)
    assert ["m1", "100%", "2", "2,011", "0", "59", "0", "0.002"] in figures
    assert ["Together", "", "2", "2,011", "0", "59", "0", "0.002"] in figures
    assert [today, "1", "1,234", "0", "56", "0", "0.0012"] in figures
    assert REPORT in page_of(operator, "/admin/providers/usagerecord/")


@pytest.mark.parametrize("by", ["model", "kind", "assistant", "key", "user", "organization"])
def test_tells_usage_apart_by_names(operator, alice, new_model, monkeypatch, by):
    key, _ = alice.new_key()
    assistant_id = uuid4()
    monkeypatch.setattr(
        "accounts.registry.assistant_names._function", lambda ids: {assistant_id: "Guide"}
    )
    who = {"organization_id": alice.organization.pk, "user_id": alice.user.pk}
    who |= {"api_key_id": key.pk, "assistant_id": assistant_id}
    ledger.record(new_model("m1"), Usage(30, 10), **who)
    names = {
        "model": "m1",
        "kind": "chat",
        "assistant": "Guide",
        "key": key.name,
        "user": alice.user.email,
        "organization": alice.organization.name,
    }
    page = page_of(operator, REPORT, by=by)
    assert [names[by], "100%", "1", "30", "0", "10", "0", "0.00"] in figures_of(page)
    rows = list(csv.DictReader(page_of(operator, REPORT, by=by, csv="groups").splitlines()))
    assert names[by] in rows[0].values()
    assert (rows[0]["calls"], rows[0]["prompt_tokens"]) == ("1", "30")


def test_the_largest_are_coloured_and_the_others_summed(operator, alice, new_model):
    model = new_model("m")
    for n in range(9):
        ledger.record(model, Usage(100 - n), organization_id=alice.organization.pk)
        UsageRecord.objects.filter(model="m").update(model=f"m{n}")
    page = page_of(operator, REPORT)
    named = re.findall(r'<li><span class="swatch[^>]+></span>([^<]+)</li>', page)
    assert named == [*(f"m{n}" for n in range(6)), "All others"]
    (title,) = re.findall(r"<title>[\d-]+: (m0.*?)</title>", page)
    assert title.endswith("m5 95, All others 279")


def test_shows_calls_and_cost_too(operator, used):
    assert "m1 1<" in page_of(operator, REPORT, measure="calls")
    page = page_of(operator, REPORT, measure="cost")
    assert "m1 0.0012<" in page
    assert "<span>0.01</span>" in page
    assert "There is no such chart" in page_of(operator, REPORT, measure="luck")


def test_the_report_costs_few_statements(operator, used, django_assert_max_num_queries):
    for by in ("organization", "assistant"):
        with django_assert_max_num_queries(12):
            page_of(operator, REPORT, by=by)


def test_loads_nothing_from_elsewhere(operator, used):
    page = page_of(operator, REPORT)
    chart = page[page.index("<svg viewBox") : page.index("</svg>", page.index("<svg viewBox"))]
    assert "http" not in chart
    assert not re.findall(r"<script[^>]+src=\"https?:", page)


def test_shows_one_organization_or_other_days(operator, used, alice):
    page = page_of(operator, REPORT, organization=alice.organization.slug)
    assert "m1 1,290" in page
    assert "m1 780" not in page
    today = str(datetime.now(UTC).date())
    assert "m1 780" not in page_of(operator, REPORT, **{"from": today})
    assert "No usage in this period." in page_of(operator, REPORT, organization="absent")


def test_senseless_dates_are_told(operator):
    assert "as 2031-12-31" in page_of(operator, REPORT, **{"from": "soon"})


def test_a_file_holds_no_formula(operator, alice, new_model):
    for name in ("=1+1", "+1", "-1", "@SUM(A1)"):
        ledger.record(new_model(name), Usage(30), organization_id=alice.organization.pk)
    answer = operator.get(REPORT, {"csv": "both"})
    assert answer["Content-Type"].startswith("text/csv")
    assert "attachment" in answer["Content-Disposition"]
    rows = list(csv.DictReader(answer.content.decode().splitlines()))
    assert {row["model"] for row in rows} == {"'=1+1", "'+1", "'-1", "'@SUM(A1)"}
    assert {row["day"] for row in rows} == {str(datetime.now(UTC).date())}


def test_in_german_the_drawing_and_the_file_are_the_same(operator, used):
    """A comma in either would be another number, or none."""
    german = {"headers": {"Accept-Language": "de"}}
    pages = [
        operator.get(REPORT, {"measure": "cost"}, **how).content.decode() for how in ({}, german)
    ]
    drawn = [re.findall(r"<(?:rect|line)[^>]+>", page) for page in pages]
    assert drawn[0] == drawn[1]
    assert "m1 0,0012<" in pages[1]
    files = [operator.get(REPORT, {"csv": "both"}, **how).content for how in ({}, german)]
    assert files[0] == files[1]


def test_is_for_operators(alice):
    client = Client()
    client.force_login(alice.user)
    assert client.get(REPORT).status_code == 302
    assert client.get(REPORT, {"csv": "days"}).status_code == 302
    User.objects.filter(pk=alice.user.pk).update(is_staff=True)
    assert client.get(REPORT).status_code == 403, "without the right to see the ledger"


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


def drawn(values, since, until, **more):
    return chart_of(values, since, until, series=["in", "out"], label="", write=str, **more)


def test_bars_stand_at_their_days_and_are_to_scale():
    values = {date(2030, 1, 1): [40, 10], date(2030, 1, 3): [0, 100]}
    chart = drawn(values, date(2030, 1, 1), date(2030, 1, 4))
    assert chart.marks == ["100.0", "50.0", "0.0"]
    first, second, third, _ = chart.bars
    day_width = WIDTH / 4
    assert [bar.x // day_width for bar in chart.bars] == [0, 1, 2, 3]
    below, above = first.parts
    assert (below.height, above.height) == (0.4 * HEIGHT, 0.1 * HEIGHT)
    assert above.y + above.height == below.y
    assert below.y + below.height == HEIGHT
    assert (second.parts, second.title) == ([], "2030-01-02: 0")
    assert [(part.series, part.y) for part in third.parts] == [(1, 0)]
    assert first.title == "2030-01-01: in 40, out 10"


def test_few_days_are_named_and_they_are_spread_evenly():
    chart = drawn({}, date(2030, 1, 1), date(2030, 1, 30))
    assert len(chart.days) == 30
    assert [day.day for day in chart.days if day] == [1, 6, 11, 16, 21, 26]


@pytest.mark.parametrize(
    ("most", "top"), [(0, 10), (10, 10), (11, 20), (21, 25), (26, 50), (101, 200), (999, 1_000)]
)
def test_the_scale_ends_at_a_round_number(most, top):
    assert scale_of(most)[0] == top


def test_the_scale_of_money_knows_cents():
    assert scale_of(0.03, 0.01) == (0.05, 5)


@pytest.mark.parametrize(
    ("cost", "said"),
    [("0", "0.00"), ("12345.678", "12,345.68"), ("0.05", "0.05"), ("0.0042135", "0.0042")],
)
def test_money_is_written_with_the_digits_that_count(cost, said):
    assert write_cost(Decimal(cost)) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0"), (2.5, "2.5"), (9_999, "9,999"), (12_000, "12k"), (1_234_567, "1.2M")],
)
def test_large_numbers_are_short_on_an_axis(count, said):
    assert write_short(count) == said


def test_numbers_have_the_separators_of_the_language():
    with translation.override("de"):
        assert [write_short(2.5), write_short(9_999), write_short(1_234_567)] == [
            "2,5",
            "9.999",
            "1,2M",
        ]
        assert [write_cost("12345.678"), write_cost("0.0042135")] == ["12.345,68", "0,0042"]
