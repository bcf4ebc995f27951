import uuid
from decimal import Decimal

import pytest

from engine.provider.model import Usage
from providers.budgets import reservations
from providers.models import Budget, BudgetCounter
from providers.tests.budgets import budget_subject, new_budget, tokens
from providers.usage import ledger
from tests.fixtures.personas import api

ALL = "/api/v1/budgets/"
ABSENT = "01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00"
DAILY = {"scope": "organization", "period": "day", "unit": "tokens", "limit": "1000"}
FIELDS = {
    "id",
    "scope",
    "subject",
    "assistant_id",
    "period",
    "unit",
    "limit",
    "used",
    "reserved",
    "resets_at",
    "by_operator",
    "created_at",
    "updated_at",
}


def one(budget):
    return f"{ALL}{getattr(budget, 'pk', budget)}/"


def amounts(row):
    return int(Decimal(row["used"])), int(Decimal(row["reserved"]))


def fields_of(answer):
    assert answer.status_code == 400, answer.content
    return sorted(answer.json()["error"]["fields"])


def test_sets_a_limit_that_holds_at_once(alice, new_model):
    model = new_model("m")
    who = {"organization_id": alice.organization.pk, "user_id": alice.user.pk}
    ledger.record(model, Usage(300, 100), **who)
    answer = api(alice).post(ALL, DAILY)
    assert answer.status_code == 201
    made = answer.json()
    assert set(made) == FIELDS
    assert (made["scope"], made["subject"], made["limit"]) == ("organization", "", "1000.00000000")
    assert made["resets_at"].endswith("T00:00:00Z")
    assert amounts(made) == (400, 0)
    assert reservations.reserve(budget_subject(alice), lambda: tokens(600), holder_id=uuid.uuid4())
    shown = api(alice).get(one(made["id"])).json()
    assert amounts(shown) == (400, 600)


def test_lists_with_what_is_used(alice, carol):
    mine = new_budget(alice, 10)
    each = new_budget(alice, 10, scope="user")
    reservations.count(budget_subject(alice), tokens(4))
    rows = {row["id"]: row for row in api(carol).get(ALL).json()["results"]}
    assert Decimal(rows[str(mine.pk)]["used"]) == 4
    assert rows[str(each.pk)]["used"] is None


def test_listing_costs_as_much_for_many(alice, django_assert_max_num_queries):
    for scope in ("organization", "user", "key", "guest"):
        new_budget(alice, 10, scope=scope)
    client = api(alice)
    with django_assert_max_num_queries(5):  # session, user, membership, page, counters
        assert len(client.get(ALL).json()["results"]) == 4


def test_changes_the_limit_and_nothing_else(alice):
    budget = new_budget(alice, 10)
    answer = api(alice).patch(one(budget), {"limit": 20, "scope": "user", "organization": "x"})
    assert answer.status_code == 200
    budget.refresh_from_db()
    assert (int(budget.limit), budget.scope) == (20, "organization")
    assert fields_of(api(alice).patch(one(budget), {})) == ["limit"]


def test_deletes(alice):
    budget = new_budget(alice, 10)
    reservations.count(budget_subject(alice), tokens(4))
    assert api(alice).delete(one(budget)).status_code == 204
    assert not Budget.objects.exists()
    assert not BudgetCounter.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"scope": "planet"}, "scope"),
        ({"period": "year"}, "period"),
        ({"unit": "euros"}, "unit"),
        ({"limit": -1}, "limit"),
        ({"limit": "much"}, "limit"),
        ({"limit": None}, "limit"),
        ({"subject": "x"}, "subject"),
        ({"scope": "user", "subject": "x"}, "subject"),
        ({"scope": "key", "subject": "1"}, "subject"),
        ({"assistant_id": ABSENT}, "assistant_id"),
        ({"scope": "guest", "assistant_id": "x"}, "assistant_id"),
    ],
    ids=str,
)
def test_a_bad_body_is_400(alice, changes, field):
    assert fields_of(api(alice).post(ALL, DAILY | changes)) == [field]
    assert not Budget.objects.exists()


def test_names_a_colleague_a_key_or_a_guest(alice, bob):
    key, _ = bob.new_key()
    for scope, subject in (("user", bob.user.pk), ("key", key.pk), ("guest", "anna")):
        body = DAILY | {"scope": scope, "subject": str(subject)}
        assert api(alice).post(ALL, body).json()["subject"] == str(subject)


@pytest.mark.parametrize("scope", ["user", "key", "assistant"])
def test_names_nobody_of_another_tenant(alice, mallory, scope):
    key, _ = mallory.new_key()
    ids = {"user": mallory.user.pk, "key": key.pk, "assistant": uuid.uuid4()}
    for subject in (ids[scope], uuid.uuid4()):
        body = DAILY | {"scope": scope, "subject": str(subject)}
        assert api(alice).post(ALL, body).status_code == 404
    body = DAILY | {"scope": "guest", "assistant_id": str(uuid.uuid4())}
    assert api(alice).post(ALL, body).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_there_is_one_of_each_kind(alice):
    assert api(alice).post(ALL, DAILY).status_code == 201
    again = api(alice).post(ALL, DAILY | {"limit": 5})
    assert again.status_code == 409
    assert Budget.objects.get().limit == 1_000


def test_members_and_keys_may_not(alice, bob):
    budget = new_budget(alice, 10)
    _, secret = alice.new_key()
    for client in (api(bob), api(key=secret)):
        assert client.get(ALL).status_code == 403
        assert client.post(ALL, DAILY).status_code == 403
        assert client.get(one(budget)).status_code in (403, 404)
        assert client.patch(one(budget), {"limit": 9}).status_code in (403, 404)
        assert client.delete(one(budget)).status_code in (403, 404)
    assert Budget.objects.get().limit == 10


def test_another_tenant_finds_nothing(alice, mallory):
    budget = new_budget(alice, 10)
    client = api(mallory)
    assert client.get(ALL).json()["results"] == []
    assert client.get(one(budget)).status_code == 404
    assert client.patch(one(budget), {"limit": 9}).status_code == 404
    assert client.delete(one(budget)).status_code == 404


def test_anonymous_is_401(db):
    assert api().get(ALL).status_code == 401
    assert api().post(ALL, DAILY).status_code == 401


def test_a_budget_of_the_operators_is_seen_and_left_alone(alice):
    kept = new_budget(alice, scope="organization", limit=100, by_operator=True)
    assert api(alice).get(one(kept)).json()["by_operator"] is True
    assert api(alice).patch(one(kept), {"limit": "999999"}).status_code == 403
    assert api(alice).delete(one(kept)).status_code == 403
    kept.refresh_from_db()
    assert kept.limit == 100
