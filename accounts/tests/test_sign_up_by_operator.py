"""What the endpoints' tests do not reach: sign-up by an operator, and races."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from allauth.account.models import EmailAddress
from django.db import connection

from accounts import services
from accounts.models import ApiKey, Membership, Organization, Role, User
from amber.lib.errors import Conflict, Invalid
from amber.lib.secrets import new_api_key
from tests.fixtures.personas import OPERATOR, Persona, api, join


def test_sign_up_gives_a_personal_organization(db):
    user = services.sign_up(" Alice@Example.com ", password="pw", name="Alice", time_zone="UTC")
    assert user.email == "alice@example.com"
    assert user.check_password("pw")
    assert (user.is_staff, user.is_superuser) == (False, False)
    membership = user.memberships.get()
    assert membership.role == "owner"
    assert (membership.organization.personal, membership.organization.name) == (True, "Alice")
    assert EmailAddress.objects.get(user=user).verified


def test_an_operator_reaches_the_admin_pages(db):
    assert services.sign_up("root@example.com", operator=True).is_superuser


def test_without_a_password_nobody_signs_in_by_password(db):
    assert not services.sign_up("a@example.com").has_usable_password()


def test_one_account_per_address_whatever_its_case(alice):
    with pytest.raises(Conflict):
        services.sign_up("ALICE@example.com")
    assert User.objects.count() == 1
    assert Organization.objects.count() == 2


@pytest.mark.parametrize("email", ["", "nobody", "a@b@c"])
def test_an_address_that_is_none_is_refused(db, email):
    with pytest.raises(Invalid):
        services.sign_up(email)


def test_joining_twice_keeps_the_role(alice, bob):
    services.join_organization(bob.user, organization=alice.organization, by=OPERATOR, role="owner")
    assert Membership.objects.get(user=bob.user, organization=alice.organization).role == "member"


def test_a_given_secret_makes_that_key_once(alice):
    secret = new_api_key()
    _, returned = alice.new_key(secret=secret)
    assert returned == secret
    assert api(key=secret).get("/api/v1/me/").status_code == 200
    with pytest.raises(Conflict):
        alice.new_key(secret=secret)
    assert ApiKey.objects.count() == 1


def test_a_given_secret_must_have_the_form_of_a_key(alice):
    with pytest.raises(Invalid) as refusal:
        alice.new_key(secret="amb_live_made_up")
    assert "made_up" not in refusal.value.message


def test_only_the_personal_owner_owns_a_personal_organization(alice, bob):
    personal = Organization.objects.get(memberships__user=alice.user, personal=True)
    path = f"/api/v1/organizations/{personal.pk}/invitations/"
    answer = api(alice).post(path, {"email": bob.user.email, "role": "owner"})
    assert answer.status_code == 403


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_leave_at_once_leave_one_behind(alice):
    second = join("second", alice.organization, Role.OWNER)
    owners = [alice, second]
    together = Barrier(2)

    def leave(persona: Persona) -> str:
        try:
            membership = Membership.objects.get(
                organization=persona.organization, user=persona.user
            )
            together.wait(timeout=10)
            services.remove_member(membership, by=persona.principal)
            return "left"
        except Conflict:
            return "stays"
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(leave, owners)) == ["left", "stays"]
    assert alice.organization.memberships.filter(role="owner").count() == 1
