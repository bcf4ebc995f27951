import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone

from accounts import services
from accounts.admin.users import UserAdmin
from accounts.closing import close_account
from accounts.models import Invitation, Membership, User
from tests.fixtures.personas import OPERATOR, Persona, api

ACCEPT = "/api/v1/invitations/accept/"
FIND = "/api/v1/invitations/find/"
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


def test_the_invited_sees_who_invites_to_what_before_they_answer(token, alice, mallory):
    answer = api(mallory).post(FIND, {"token": token})
    assert answer.status_code == 200
    found = answer.json()
    assert found.pop("expires_at")
    assert found == {"organization": "Acme", "inviter": "Alice", "role": "member"}
    User.objects.filter(pk=alice.user.pk).update(name="")
    assert api(mallory).post(FIND, {"token": token}).json()["inviter"] == alice.user.email
    assert accept(mallory, token).status_code == 200
    assert api(mallory).post(FIND, {"token": token}).status_code == 404


def test_nobody_else_sees_an_invitation(token, bob, mallory):
    assert api().post(FIND, {"token": token}).status_code == 401
    assert api(key=mallory.new_key()[1]).post(FIND, {"token": token}).status_code == 403
    refused = api(bob).post(FIND, {"token": token})
    assert refused.status_code == 403
    assert "Acme" not in refused.content.decode()
    assert api(mallory).post(FIND, {"token": "wrong"}).status_code == 404
    assert api(mallory).post(FIND, {}).status_code == 400


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


def accept(persona: Persona, token: str) -> Any:
    return api(persona).post(ACCEPT, {"token": token})


def is_refused(answer: Any, mallory: Persona) -> bool:
    """With a sentence that says what to do; nobody joined."""
    assert answer.status_code == 404, answer.content
    assert "its sender may no longer invite people" in answer.json()["error"]["message"]
    return not Membership.objects.filter(user=mallory.user, organization__name="Acme").exists()


def member_of(alice: Persona, persona: Persona) -> str:
    member = persona.user.memberships.get(organization=alice.organization)
    return f"/api/v1/organizations/{alice.organization.pk}/members/{member.pk}/"


@pytest.mark.parametrize("role", ["member", "admin"])
def test_it_ends_when_its_sender_is_demoted(alice, carol, mallory, role):
    """And stays ended when they are promoted again."""
    token = invite(carol, mallory.user.email, role=role).json()["token"]
    for given in ("member", "admin"):
        assert api(alice).patch(member_of(alice, carol), {"role": given}).status_code == 200
        assert is_refused(accept(mallory, token), mallory)
    assert not Invitation.objects.exists()


def test_an_owner_who_becomes_admin_still_invites_admins(alice, carol, mallory):
    for persona in (carol, alice):
        api(alice).patch(member_of(alice, persona), {"role": "owner"})
    kept = invite(carol, mallory.user.email, role="admin").json()["token"]
    invite(carol, "z@example.com", role="owner")
    api(alice).patch(member_of(alice, carol), {"role": "admin"})
    assert [each.role for each in Invitation.objects.all()] == ["admin"]
    assert accept(mallory, kept).status_code == 200


def test_it_ends_when_its_sender_is_removed_or_leaves(alice, carol, mallory):
    for remover in (alice, carol):
        token = invite(carol, mallory.user.email).json()["token"]
        assert api(remover).delete(member_of(alice, carol)).status_code == 204
        assert is_refused(accept(mallory, token), mallory)
        assert not Invitation.objects.exists()
        services.join_organization(
            carol.user, organization=alice.organization, by=OPERATOR, role="admin"
        )


def test_it_ends_with_its_senders_account(carol, mallory):
    token = invite(carol, mallory.user.email).json()["token"]
    close_account(carol.user)
    assert not Invitation.objects.exists()
    assert is_refused(accept(mallory, token), mallory)


def test_it_ends_when_operators_disable_its_sender(alice, carol, mallory):
    token = invite(carol, mallory.user.email).json()["token"]
    carol.user.is_active = False
    UserAdmin(User, admin.site).save_model(HttpRequest(), carol.user, None, True)
    assert not Invitation.objects.exists()
    assert is_refused(accept(mallory, token), mallory)


@pytest.mark.parametrize("change", ["demoted", "removed", "disabled", "erased", "made owner's"])
def test_whether_its_sender_may_is_looked_at_when_it_is_accepted(alice, carol, mallory, change):
    """However they lost it: operators edit rows, too."""
    token = invite(carol, mallory.user.email).json()["token"]
    members = Membership.objects.filter(user=carol.user, organization=alice.organization)
    {
        "demoted": lambda: members.update(role="member"),
        "removed": lambda: members.delete(),
        "disabled": lambda: User.objects.filter(pk=carol.user.pk).update(is_active=False),
        "erased": lambda: User.objects.filter(pk=carol.user.pk).delete(),
        "made owner's": lambda: Invitation.objects.update(role="owner"),
    }[change]()
    assert is_refused(accept(mallory, token), mallory)
    assert not may_be_invited(mallory)


def may_be_invited(mallory: Persona) -> bool:
    """Where sign-up is closed an open invitation opens it."""
    return Invitation.objects.open().filter(email__iexact=mallory.user.email).exists()


def test_a_member_cannot_be_invited_again(alice, bob):
    assert invite(alice, bob.user.email.upper()).status_code == 409


def test_accepting_never_lowers_a_role(alice, bob):
    token = invite(alice, "late@example.com").json()["token"]
    late = services.sign_up("late@example.com")
    services.join_organization(late, organization=alice.organization, by=OPERATOR, role="admin")
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
