import uuid

import pytest

from accounts.models import Membership, Organization
from tests.fixtures.personas import api

ALL = "/api/v1/organizations/"


def one(organization_id: uuid.UUID) -> str:
    return f"{ALL}{organization_id}/"


def test_lists_mine_newest_first_with_my_role(alice, bob, mallory):
    listed = api(bob).get(ALL).json()["results"]
    assert [(row["name"], row["role"]) for row in listed] == [("Bob", "owner"), ("Acme", "member")]


def test_a_key_sees_its_own_organization_only(alice):
    _, secret = alice.new_key()
    listed = api(key=secret).get(ALL).json()["results"]
    assert [row["name"] for row in listed] == ["Acme"]
    personal = Organization.objects.get(memberships__user=alice.user, personal=True)
    assert api(key=secret).get(one(alice.organization.pk)).status_code == 200
    assert api(key=secret).get(one(personal.pk)).status_code == 404


def test_creates_one_that_i_own(alice):
    answer = api(alice).post(ALL, {"name": "Ünïted 中文"})
    assert answer.status_code == 201
    assert answer.json()["role"] == "owner"
    assert answer.json()["personal"] is False
    membership = Membership.objects.get(organization_id=answer.json()["id"])
    assert (membership.user_id, membership.role) == (alice.user.pk, "owner")


def test_two_may_have_the_same_name(alice, mallory):
    slugs = {api(who).post(ALL, {"name": "Twin"}).json()["slug"] for who in (alice, mallory)}
    assert len(slugs) == 2


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "x" * 201}, {"name": ["x"]}])
def test_creating_without_a_good_name_is_400(alice, body):
    answer = api(alice).post(ALL, body)
    assert answer.status_code == 400
    assert "name" in answer.json()["error"]["fields"]


def test_reads_one_that_is_not_active(alice):
    personal = Organization.objects.get(memberships__user=alice.user, personal=True)
    assert api(alice).get(one(personal.pk)).json()["id"] == str(personal.pk)


def test_admins_change_name_prompt_and_retention(alice, carol):
    answer = api(carol).patch(
        one(alice.organization.pk),
        {"name": "Acme 2", "default_prompt": "Be brief.\n", "retention_days": 30, "personal": True},
    )
    assert answer.status_code == 200
    organization = Organization.objects.get(pk=alice.organization.pk)
    assert organization.name == "Acme 2"
    assert organization.default_prompt == "Be brief.\n"
    assert organization.retention_days == 30
    assert organization.personal is False
    assert api(carol).patch(one(organization.pk), {"retention_days": None}).status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [("retention_days", 0), ("retention_days", 4000), ("name", ""), ("default_prompt", None)],
)
def test_wrong_values_are_400(alice, field, value):
    answer = api(alice).patch(one(alice.organization.pk), {field: value})
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [field]


def test_a_member_may_read_but_not_change(bob):
    assert api(bob).get(one(bob.organization.pk)).status_code == 200
    assert api(bob).patch(one(bob.organization.pk), {"name": "x"}).status_code == 403
    assert api(bob).delete(one(bob.organization.pk)).status_code == 403


def test_only_the_owner_deletes(alice, carol):
    assert api(carol).delete(one(alice.organization.pk)).status_code == 403
    client = api(alice)
    assert client.delete(one(alice.organization.pk)).status_code == 204
    assert client.get(one(alice.organization.pk)).status_code == 404
    assert api(carol).get(one(alice.organization.pk)).status_code == 404
    assert Organization.objects.get(pk=alice.organization.pk).deleted_at is not None
    assert client.get("/api/v1/me/").json()["organization"]["personal"] is True


def test_a_personal_one_stays(alice):
    personal = Organization.objects.get(memberships__user=alice.user, personal=True)
    assert api(alice).delete(one(personal.pk)).status_code == 403
    assert Organization.objects.filter(pk=personal.pk).exists()


@pytest.mark.parametrize("method", ["get", "patch", "delete"])
def test_a_foreign_one_is_the_same_404_as_none(alice, mallory, method):
    foreign = getattr(api(mallory), method)(one(alice.organization.pk), {})
    absent = getattr(api(mallory), method)(one(uuid.uuid4()), {})
    assert foreign.status_code == absent.status_code == 404
    assert foreign.json()["error"]["message"] == absent.json()["error"]["message"]


def test_keys_may_not_change_organizations(alice):
    _, secret = alice.new_key()
    assert api(key=secret).post(ALL, {"name": "x"}).status_code == 403
    assert api(key=secret).patch(one(alice.organization.pk), {"name": "x"}).status_code == 403
    assert api(key=secret).delete(one(alice.organization.pk)).status_code == 403
    assert Organization.objects.filter(pk=alice.organization.pk, name="Acme").exists()


@pytest.mark.parametrize("method", ["get", "post"])
def test_anonymous_is_401(db, method):
    assert getattr(api(), method)(ALL, {"name": "x"}).status_code == 401


@pytest.mark.parametrize("method", ["get", "patch", "delete"])
def test_anonymous_is_401_for_one(db, method):
    assert getattr(api(), method)(one(uuid.uuid4()), {}).status_code == 401
