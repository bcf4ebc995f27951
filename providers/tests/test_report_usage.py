import csv
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from engine.provider.model import Usage
from providers.models import UsageRecord
from providers.usage import ledger
from tests.fixtures.personas import api

ALL = "/api/v1/usage/"
USUAL = Usage(3, 2, 1)
DAY_MS = 86_400_000


def day(days_ago=0):
    return str((datetime.now(UTC) - timedelta(days=days_ago)).date())


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
        # An id holds its time, and reports look at both.
        dated = UUID(int=row.pk.int - (int(days_ago * DAY_MS) << 80))
        UsageRecord.objects.filter(pk=row.pk).update(id=dated, created_at=at)
        row.pk = dated
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
    assert (today["day"], yesterday["day"]) == (day(), day(1))
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
    said = {
        "from": day(2),
        "to": day(2),
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
    since = day(60)
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


# -- As CSV --------------------------------------------------------------------------------------


def exported(persona, **said):
    answer = api(persona).get(f"{ALL}export/", said)
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert re.search(
        r'attachment; filename="amber-usage-[0-9-]+-to-', answer["Content-Disposition"]
    )
    return list(csv.DictReader(answer.content.decode().splitlines()))


def test_exports_the_sums_with_names_beside_ids(alice, record, monkeypatch):
    key, _ = alice.new_key(name="=HYPERLINK(1)")
    assistant_id = uuid4()
    monkeypatch.setattr(
        "accounts.registry.assistant_names._function", lambda ids: {assistant_id: "+Guide"}
    )
    record(alice, api_key_id=key.pk, assistant_id=assistant_id)
    record(alice, days_ago=1)
    first, second = exported(alice, group_by="day,key,assistant,user")
    assert first == {
        "day": day(),
        "api_key_id": str(key.pk),
        "api_key_name": "'=HYPERLINK(1)",
        "assistant_id": str(assistant_id),
        "assistant_name": "'+Guide",
        "user_id": str(alice.user.pk),
        "user_name": alice.user.email,
        "calls": "1",
        "prompt_tokens": "3",
        "completion_tokens": "2",
        "cached_tokens": "1",
        "reasoning_tokens": "0",
        "cost": "0.00300000",
    }
    assert (second["api_key_id"], second["api_key_name"], second["calls"]) == ("", "", "1")
    assert [row["model"] for row in exported(alice)] == ["m", "m"]


def test_an_export_is_as_limited_as_the_list(alice, bob, mallory, record):
    for persona in (alice, bob, mallory):
        record(persona)
    shown = [[row["user_name"] for row in exported(who, group_by="user")] for who in (bob, mallory)]
    assert shown == [[bob.user.email], [mallory.user.email]]
    both = {row["user_name"] for row in exported(alice, group_by="user")}
    assert both == {alice.user.email, bob.user.email}


def test_refused_exports_are_json(alice):
    assert api().get(f"{ALL}export/").status_code == 401
    answer = api(alice).get(f"{ALL}export/", {"group_by": "planet"}, HTTP_ACCEPT="text/csv")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
    none = api(alice).get(f"{ALL}export/").content.decode()
    assert none.splitlines() == [
        "day,model,calls,prompt_tokens,completion_tokens,cached_tokens,reasoning_tokens,cost"
    ]
