import uuid

import pytest

from accounts import services
from accounts.models import ApiKey, Membership
from tests.fixtures.personas import OPERATOR, Persona, api


def members(persona: Persona) -> str:
    return f"/api/v1/organizations/{persona.organization.pk}/members/"


def membership_of(persona: Persona) -> Membership:
    return Membership.objects.get(organization=persona.organization, user=persona.user)


def member(persona: Persona) -> str:
    return f"{members(persona)}{membership_of(persona).pk}/"


def test_every_member_sees_who_is_there(alice, bob, carol, mallory):
    listed = api(bob).get(members(bob)).json()["results"]
    assert {(row["email"], row["role"]) for row in listed} == {
        ("alice@example.com", "owner"),
        ("bob@example.com", "member"),
        ("carol@example.com", "admin"),
    }
    assert api(bob).get(member(alice)).json()["user_id"] == str(alice.user.pk)


def test_admins_change_roles_below_owner(carol, bob):
    answer = api(carol).patch(member(bob), {"role": "admin"})
    assert answer.status_code == 200
    assert membership_of(bob).role == "admin"


@pytest.mark.parametrize("role", ["owner"])
def test_admins_make_no_owners(carol, bob, role):
    assert api(carol).patch(member(bob), {"role": role}).status_code == 403
    assert membership_of(bob).role == "member"


def test_admins_do_not_touch_owners(alice, carol):
    assert api(carol).patch(member(alice), {"role": "member"}).status_code == 403
    assert api(carol).delete(member(alice)).status_code == 403
    assert membership_of(alice).role == "owner"


def test_owners_make_owners(alice, bob):
    assert api(alice).patch(member(bob), {"role": "owner"}).status_code == 200
    assert api(bob).patch(member(alice), {"role": "member"}).status_code == 200
    assert membership_of(alice).role == "member"


def test_the_last_owner_stays(alice, carol):
    assert api(alice).patch(member(alice), {"role": "member"}).status_code == 409
    assert api(alice).delete(member(alice)).status_code == 409
    assert membership_of(alice).role == "owner"


def test_members_change_nobody(alice, bob, carol):
    assert api(bob).patch(member(carol), {"role": "member"}).status_code == 403
    assert api(bob).patch(member(bob), {"role": "owner"}).status_code == 403
    assert api(bob).delete(member(carol)).status_code == 403
    assert membership_of(carol).role == "admin"


def test_members_leave(bob):
    assert api(bob).delete(member(bob)).status_code == 204
    assert not bob.organization.memberships.filter(user=bob.user).exists()


def test_the_keys_of_a_removed_member_never_work_again(alice, bob):
    key, secret = bob.new_key()
    assert api(key=secret).get("/api/v1/me/").status_code == 200
    assert api(alice).delete(member(bob)).status_code == 204
    assert api(key=secret).get("/api/v1/me/").status_code == 401
    Membership.objects.create(organization=bob.organization, user=bob.user)
    assert api(key=secret).get("/api/v1/me/").status_code == 401
    assert ApiKey.objects.get(pk=key.pk).revoked_at is not None


def test_nor_does_one_that_was_made_in_the_moment_of_the_removal(alice, bob):
    assert api(alice).delete(member(bob)).status_code == 204
    _, secret = bob.new_key()
    assert api(key=secret).get("/api/v1/me/").status_code == 401
    services.join_organization(bob.user, organization=bob.organization, by=OPERATOR)
    assert api(key=secret).get("/api/v1/me/").status_code == 401
    _, new = bob.new_key()
    assert api(key=new).get("/api/v1/me/").status_code == 200


@pytest.mark.parametrize("body", [{}, {"role": "emperor"}, {"role": None}])
def test_an_unknown_role_is_400(alice, bob, body):
    answer = api(alice).patch(member(bob), body)
    assert answer.status_code == 400
    assert "role" in answer.json()["error"]["fields"]


@pytest.mark.parametrize("method", ["get", "patch", "delete"])
def test_another_tenant_finds_nothing(alice, bob, mallory, method):
    assert api(mallory).get(members(alice)).status_code == 404
    assert getattr(api(mallory), method)(member(bob), {"role": "admin"}).status_code == 404
    # Nor through an organization of their own.
    smuggled = f"{members(mallory)}{membership_of(bob).pk}/"
    assert getattr(api(mallory), method)(smuggled, {"role": "admin"}).status_code == 404
    assert membership_of(bob).role == "member"


@pytest.mark.parametrize("method", ["get", "patch", "delete"])
def test_keys_may_not(alice, bob, method):
    _, secret = alice.new_key()
    assert api(key=secret).get(members(alice)).status_code == 403
    assert getattr(api(key=secret), method)(member(bob), {"role": "admin"}).status_code == 403


@pytest.mark.parametrize("method", ["get", "patch", "delete"])
def test_anonymous_is_401(db, method):
    organization = f"/api/v1/organizations/{uuid.uuid4()}/members/"
    assert api().get(organization).status_code == 401
    assert getattr(api(), method)(f"{organization}{uuid.uuid4()}/", {}).status_code == 401
