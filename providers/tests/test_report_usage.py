from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from engine.provider.model import Usage
from providers.models import UsageRecord
from providers.usage import ledger
from tests.personas import api

ALL = "/api/v1/usage/"
USUAL = Usage(3, 2, 1)
TODAY = datetime.now(UTC).date()


@pytest.fixture
def record(new_model):
    models = {}

    def write(persona, *, days_ago=0, model="m", usage=USUAL, **fields):
        if model not in models:
            models[model] = new_model(model, price_in=Decimal(1_000))
        row = ledger.record(
            models[model],
            usage,
            organization_id=persona.organization.pk,
            user_id=persona.user.pk,
            **fields,
        )
        at = datetime.now(UTC) - timedelta(days=days_ago)
        UsageRecord.objects.filter(pk=row.pk).update(created_at=at)
        return row

    return write


def report(persona, group_by, **said):
    answer = api(persona).get(ALL, {"group_by": group_by, **said})
    assert answer.status_code == 200, answer.content
    page = answer.json()
    assert (page["next"], page["previous"]) == (None, None)
    return page["results"]


def test_sums_by_day_newest_first(alice, record):
    record(alice, days_ago=1)
    record(alice)
    record(alice, usage=Usage(10, 0))
    sums = {
        "calls",
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "cost",
    }
    today, yesterday = report(alice, "day")
    assert set(today) == {"day"} | sums
    assert (today["day"], yesterday["day"]) == (str(TODAY), str(TODAY - timedelta(days=1)))
    assert (today["calls"], today["prompt_tokens"], today["completion_tokens"]) == (2, 13, 2)
    assert (today["cached_tokens"], today["cost"]) == (1, "0.01300000")


def test_sums_by_everything_there_is(alice, bob, record, new_embedding_model):
    key_id, assistant_id = uuid4(), uuid4()
    record(alice, model="big", api_key_id=key_id, assistant_id=assistant_id, usage=Usage(90, 0))
    record(bob, model="small")
    ledger.record(new_embedding_model("e"), Usage(1), organization_id=alice.organization.pk)
    assert [row["model"] for row in report(alice, "model")] == ["big", "small", "e"]
    assert [row["kind"] for row in report(alice, "kind")] == ["chat", "embedding"]
    assert [row["api_key_id"] for row in report(alice, "key")] == [str(key_id), None]
    assert [row["assistant_id"] for row in report(alice, "assistant")] == [str(assistant_id), None]
    users = [str(alice.user.pk), str(bob.user.pk), None]
    assert [row["user_id"] for row in report(alice, "user")] == users
    both = report(alice, "model,kind")
    assert {(row["model"], row["kind"]) for row in both} == {
        ("big", "chat"),
        ("small", "chat"),
        ("e", "embedding"),
    }


def test_members_get_their_own_sums_and_admins_all(alice, carol, bob, mallory, record):
    for persona in (alice, bob, mallory):
        record(persona)
    assert [report(who, "model")[0]["calls"] for who in (alice, carol, bob, mallory)] == [
        2,
        2,
        1,
        1,
    ]


def test_filters_calls_and_sums_alike(alice, bob, record):
    key_id = uuid4()
    wanted = record(alice, days_ago=2, model="big", api_key_id=key_id)
    record(alice, days_ago=2, model="big")
    record(bob, days_ago=2, model="big", api_key_id=key_id)
    record(alice, days_ago=1, model="big", api_key_id=key_id)
    record(alice, days_ago=3, model="big", api_key_id=key_id)
    record(alice, days_ago=2, model="small", api_key_id=key_id)
    day = str(TODAY - timedelta(days=2))
    said = {
        "from": day,
        "to": day,
        "model": "big",
        "kind": "chat",
        "user_id": str(alice.user.pk),
        "api_key_id": str(key_id),
    }
    listed = api(alice).get(ALL, said).json()["results"]
    assert [row["id"] for row in listed] == [str(wanted.pk)]
    assert [row["calls"] for row in report(alice, "day", **said)] == [1]


def test_a_report_is_about_the_last_thirty_days_unless_told_otherwise(alice, record):
    record(alice, days_ago=29)
    record(alice, days_ago=30)
    assert [row["calls"] for row in report(alice, "model")] == [1]
    since = str(TODAY - timedelta(days=60))
    assert [row["calls"] for row in report(alice, "model", **{"from": since})] == [2]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"group_by": "planet"}, "group_by"),
        ({"group_by": ""}, "group_by"),
        ({"group_by": "day,"}, "group_by"),
        ({"from": "yesterday"}, "from"),
        ({"to": "2030-02-31"}, "to"),
        ({"to": "9999-12-31"}, "to"),
        ({"group_by": "day", "to": "0001-01-01"}, "to"),
        ({"from": "2030-02-02", "to": "2030-02-01"}, "to"),
        ({"group_by": "day", "from": "2030-01-01", "to": "2031-01-02"}, "from"),
        ({"kind": "walk"}, "kind"),
        ({"assistant_id": "x"}, "assistant_id"),
    ],
    ids=str,
)
def test_senseless_questions_are_400(alice, said, field):
    answer = api(alice).get(ALL, said)
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [field]


def test_too_many_groups_are_400(alice, record, monkeypatch):
    monkeypatch.setattr("providers.usage.report.MAX_GROUPS", 2)
    for model in ("a", "b", "c"):
        record(alice, model=model)
    assert api(alice).get(ALL, {"group_by": "model"}).status_code == 400


def test_a_report_is_one_query_however_much_there_is(alice, record, django_assert_max_num_queries):
    for n in range(5):
        record(alice, days_ago=n)
    client = api(alice)
    with django_assert_max_num_queries(4):  # session, user, membership, sums
        assert len(client.get(ALL, {"group_by": "day,model"}).json()["results"]) == 5
