import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts import services
from accounts.models import Invitation, Membership
from tests.personas import Persona, api

ACCEPT = "/api/v1/invitations/accept/"
DECLINE = "/api/v1/invitations/decline/"


def invitations(persona: Persona) -> str:
    return f"/api/v1/organizations/{persona.organization.pk}/invitations/"


def invite(persona: Persona, email: str, **fields: str) -> Any:
    return api(persona).post(invitations(persona), {"email": email, **fields})


@pytest.fixture
def token(alice: Persona, mallory: Persona) -> Any:
    """For mallory, to Acme."""
    return invite(alice, "Mallory@Example.com").json()["token"]


def test_shows_the_token_once_and_keeps_its_hash(alice):
    answer = invite(alice, "New@Example.com", role="admin")
    assert answer.status_code == 201
    kept = Invitation.objects.get()
    assert (kept.email, kept.role, kept.invited_by) == ("new@example.com", "admin", alice.user)
    token = answer.json()["token"]
    assert token not in str(kept.__dict__)
    listed = api(alice).get(invitations(alice))
    assert [row["email"] for row in listed.json()["results"]] == ["new@example.com"]
    assert token not in listed.content.decode()
    assert kept.token_sha256 not in listed.content.decode()


def test_the_invited_joins_with_the_role(alice, mallory):
    token = invite(alice, mallory.user.email, role="admin").json()["token"]
    answer = api(mallory).post(ACCEPT, {"token": token})
    assert answer.status_code == 200
    assert (answer.json()["name"], answer.json()["role"]) == ("Acme", "admin")
    joined = Membership.objects.get(organization=alice.organization, user=mallory.user)
    assert joined.role == "admin"
    assert api(mallory).post(ACCEPT, {"token": token}).status_code == 404
    assert api(alice).get(invitations(alice)).json()["results"] == []


def test_only_the_invited_address_may_join(token, bob):
    answer = api(bob).post(ACCEPT, {"token": token})
    assert answer.status_code == 403
    assert api(bob).post(DECLINE, {"token": token}).status_code == 403


def test_an_expired_invitation_is_gone(token, mallory):
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert api(mallory).post(ACCEPT, {"token": token}).status_code == 404


def test_declines(token, mallory):
    assert api(mallory).post(DECLINE, {"token": token}).status_code == 204
    assert api(mallory).post(ACCEPT, {"token": token}).status_code == 404
    assert not Invitation.objects.exists()


def test_revokes(token, alice, mallory):
    one = f"{invitations(alice)}{Invitation.objects.get().pk}/"
    assert api(alice).delete(one).status_code == 204
    assert api(mallory).post(ACCEPT, {"token": token}).status_code == 404
    assert api(alice).delete(one).status_code == 404


def test_an_accepted_one_cannot_be_revoked(token, alice, mallory):
    api(mallory).post(ACCEPT, {"token": token})
    one = f"{invitations(alice)}{Invitation.objects.get().pk}/"
    assert api(alice).delete(one).status_code == 404


def test_inviting_again_ends_the_earlier_invitation(token, alice, mallory):
    second = invite(alice, mallory.user.email).json()["token"]
    assert api(mallory).post(ACCEPT, {"token": token}).status_code == 404
    assert api(mallory).post(ACCEPT, {"token": second}).status_code == 200


def test_a_member_cannot_be_invited_again(alice, bob):
    assert invite(alice, bob.user.email.upper()).status_code == 409


def test_accepting_never_lowers_a_role(alice, bob):
    token = invite(alice, "late@example.com").json()["token"]
    late = services.sign_up("late@example.com")
    services.join_organization(late, organization=alice.organization, role="admin")
    client = api()
    client.force_login(late)
    assert client.post(ACCEPT, {"token": token}).json()["role"] == "admin"


def test_only_owners_invite_owners(alice, carol):
    assert invite(carol, "x@example.com", role="owner").status_code == 403
    assert invite(carol, "x@example.com", role="admin").status_code == 201
    assert invite(alice, "y@example.com", role="owner").status_code == 201


def test_members_neither_see_nor_make_invitations(alice, bob):
    made = invite(alice, "x@example.com").json()
    assert api(bob).get(invitations(alice)).status_code == 403
    assert invite(bob, "y@example.com").status_code == 403
    assert api(bob).delete(f"{invitations(alice)}{made['id']}/").status_code == 403
    assert Invitation.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value"), [("email", "no address"), ("email", None), ("role", "emperor")]
)
def test_a_bad_body_is_400(alice, field, value):
    answer = api(alice).post(invitations(alice), {"email": "x@example.com", field: value})
    assert answer.status_code == 400
    assert field in answer.json()["error"]["fields"]


@pytest.mark.parametrize("path", [ACCEPT, DECLINE])
def test_tokens_that_are_none(alice, path):
    assert api(alice).post(path, {}).json()["error"]["fields"] == {
        "token": ["This field is required."]
    }
    assert api(alice).post(path, {"token": "made up"}).status_code == 404
    assert api().post(path, {"token": "made up"}).status_code == 401


def test_another_tenant_finds_nothing(alice, mallory):
    made = invite(alice, "x@example.com").json()
    assert api(mallory).get(invitations(alice)).status_code == 404
    assert api(mallory).post(invitations(alice), {"email": "y@example.com"}).status_code == 404
    assert api(mallory).delete(f"{invitations(alice)}{made['id']}/").status_code == 404
    assert api(mallory).delete(f"{invitations(mallory)}{made['id']}/").status_code == 404
    assert Invitation.objects.count() == 1


def test_keys_may_not(alice, token):
    _, secret = alice.new_key()
    client = api(key=secret)
    assert client.get(invitations(alice)).status_code == 403
    assert client.post(invitations(alice), {"email": "y@example.com"}).status_code == 403
    assert client.post(ACCEPT, {"token": token}).status_code == 403
    assert client.post(DECLINE, {"token": token}).status_code == 403
    one = f"{invitations(alice)}{Invitation.objects.get().pk}/"
    assert client.delete(one).status_code == 403


def test_anonymous_is_401(db):
    path = f"/api/v1/organizations/{uuid.uuid4()}/invitations/"
    assert api().get(path).status_code == 401
    assert api().post(path, {}).status_code == 401
    assert api().delete(f"{path}{uuid.uuid4()}/").status_code == 401
