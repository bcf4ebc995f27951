from uuid import uuid4

import pytest

from accounts.principal import Principal
from engine.provider.model import Usage
from providers.models import UsageRecord
from providers.usage import ledger
from tests.fixtures.personas import Persona, api

ALL = "/api/v1/usage/"


@pytest.fixture
def record(new_model):
    model = new_model("m")

    def write(persona, **fields):
        return ledger.record(
            model,
            Usage(3, 2),
            organization_id=persona.organization.pk,
            user_id=persona.user.pk,
            **fields,
        )

    return write


def listed(persona: Persona) -> list[str]:
    return [row["id"] for row in api(persona).get(ALL).json()["results"]]


def test_lists_my_own_newest_first(bob, record):
    first, second = record(bob), record(bob)
    assert listed(bob) == [str(second.pk), str(first.pk)]


def test_shows_what_was_used(bob, record):
    record(bob, turn_id=uuid4(), first_token_ms=5, latency_ms=10)
    row = api(bob).get(ALL).json()["results"][0]
    assert (row["model"], row["prompt_tokens"], row["completion_tokens"]) == ("m", 3, 2)
    assert row["user_id"] == str(bob.user.pk)
    assert row["cost"] == "0.00000000"
    assert "organization" not in row


def test_an_admin_sees_the_organizations_and_nobody_elses(alice, carol, bob, mallory, record):
    own = {str(record(who).pk) for who in (alice, bob)}
    record(mallory)
    assert set(listed(alice)) == set(listed(carol)) == own


def test_a_member_sees_no_other_members(alice, bob, record):
    record(alice)
    assert listed(bob) == []


def test_another_tenant_sees_nothing(alice, mallory, record):
    record(alice)
    assert listed(mallory) == []


def test_a_key_never_administers(alice, bob, record):
    mine = record(alice)
    record(bob)
    _, secret = alice.new_key()
    assert [row["id"] for row in api(key=secret).get(ALL).json()["results"]] == [str(mine.pk)]


def test_a_key_of_one_assistant_sees_what_was_asked_with_it(alice, record):
    assistant_id = uuid4()
    key, _ = alice.new_key()
    mine = record(alice, assistant_id=assistant_id, api_key_id=key.pk)
    record(alice, assistant_id=assistant_id)
    bound = Principal(alice.organization.pk, alice.user, key=key, assistant_id=assistant_id)
    assert list(UsageRecord.objects.visible_to(bound)) == [mine]


def test_pages_by_cursor(bob, record):
    rows = [str(record(bob).pk) for _ in range(3)]
    first = api(bob).get(ALL, {"limit": 2}).json()
    second = api(bob).get(first["next"]).json()
    assert [row["id"] for row in first["results"] + second["results"]] == rows[::-1]
    assert second["next"] is None


def test_refuses_a_senseless_limit(bob):
    assert api(bob).get(ALL, {"limit": "0"}).status_code == 400


def test_wants_somebody(db):
    assert api().get(ALL).status_code == 401


def test_cannot_be_written(bob):
    assert api(bob).post(ALL, {}).status_code == 405
