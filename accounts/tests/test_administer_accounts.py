from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount, SocialApp
from django.test import Client
from django.urls import reverse

from accounts import services
from accounts.models import ApiKey, Group, GroupMember, Invitation, Membership, User
from tests.fixtures.personas import api, new_group


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    client.force_login(services.sign_up("root@example.com", operator=True))
    return client


def page(model: str, what: str = "changelist", *args: Any) -> str:
    return reverse(f"admin:accounts_{model}_{what}", args=args)


@pytest.mark.parametrize("model", ["user", "organization", "group", "apikey", "invitation"])
def test_lists_cost_the_same_however_many_rows(
    operator, alice, bob, mallory, model, django_assert_max_num_queries
):
    for persona in (alice, bob, mallory):
        persona.new_key()
    for name in ("x", "y", "z"):
        new_group(name, alice, bob)
        services.invite(
            alice.organization, email=f"{name}@example.com", role="member", by=alice.principal
        )
    with django_assert_max_num_queries(8):
        assert operator.get(page(model)).status_code == 200
    assert operator.get(page(model), {"q": "a"}).status_code == 200


@pytest.mark.parametrize("model", ["user", "organization", "group", "apikey", "invitation"])
def test_only_operators_come_in(alice, model):
    assert api(alice).get(page(model)).status_code == 302


def test_makes_and_changes_users(operator):
    assert operator.get(page("user", "add")).status_code == 200
    answer = operator.post(
        page("user", "add"),
        {
            "email": "New@Example.com",
            "name": "New",
            "usable_password": "true",
            "password1": "a quite long sentence",
            "password2": "a quite long sentence",
        },
    )
    assert answer.status_code == 302
    user = User.objects.get(email="new@example.com")
    assert user.check_password("a quite long sentence")
    shown = operator.get(page("user", "change", user.pk))
    assert shown.status_code == 200
    assert user.password not in shown.content.decode()
    password_page = f"/admin/accounts/user/{user.pk}/password/"
    assert operator.get(password_page).status_code == 200


def test_refuses_a_second_account_for_an_address(operator, alice):
    answer = operator.post(
        page("user", "add"), {"email": "ALICE@example.com", "usable_password": "false"}
    )
    assert answer.status_code == 200
    assert User.objects.filter(email__iexact="alice@example.com").count() == 1


def test_shows_members_with_their_organization(operator, alice, bob):
    shown = operator.get(page("organization", "change", alice.organization.pk)).content.decode()
    assert ">alice@example.com</option>" in shown
    assert ">bob@example.com</option>" in shown


def test_never_shows_hashes(operator, alice):
    key, _ = alice.new_key()
    invitation, _ = services.invite(
        alice.organization, email="x@example.com", role="member", by=alice.principal
    )
    shown = operator.get(page("apikey", "change", key.pk)).content.decode()
    assert key.prefix in shown
    assert key.sha256 not in shown
    shown = operator.get(page("invitation", "change", invitation.pk)).content.decode()
    assert invitation.email in shown
    assert invitation.token_sha256 not in shown


def test_keys_are_neither_made_nor_deleted_but_revoked(operator, alice):
    key, secret = alice.new_key()
    assert operator.get(page("apikey", "add")).status_code == 403
    assert operator.post(page("apikey", "delete", key.pk)).status_code == 403
    operator.post(page("apikey"), {"action": "revoke", "_selected_action": [str(key.pk)]})
    assert ApiKey.objects.get().revoked_at is not None
    assert api(key=secret).get("/api/v1/me/").status_code == 401


@pytest.mark.parametrize(
    "change", [{"role": "member"}, {"DELETE": "on"}], ids=["demoted", "removed"]
)
def test_a_member_who_is_demoted_or_removed_takes_open_invitations_along(
    operator, alice, carol, change
):
    services.invite(carol.organization, email="x@example.com", role="admin", by=carol.principal)
    url = page("organization", "change", alice.organization.pk)
    form = operator.get(url).context["adminform"].form
    fields = {name: form[name].value() or "" for name in form.fields}
    members = list(Membership.objects.filter(organization=alice.organization).order_by("id"))
    prefix = operator.get(url).context["inline_admin_formsets"][0].formset.prefix
    for number, member in enumerate(members):
        given = {"id": member.pk, "user": member.user_id, "role": member.role}
        if member.user == carol.user:
            given |= change
        fields |= {f"{prefix}-{number}-{name}": value for name, value in given.items()}
    fields |= {f"{prefix}-TOTAL_FORMS": len(members), f"{prefix}-INITIAL_FORMS": len(members)}
    assert operator.post(url, fields).status_code == 302
    assert not Invitation.objects.exists()


def group_form(group: Group, *added: Any, **fields: Any) -> dict[str, Any]:
    """What the page sends back, with these users added to it."""
    there = list(group.members.order_by("pk"))
    body = {"name": group.name, "description": "", "members-INITIAL_FORMS": len(there)}
    body["members-TOTAL_FORMS"] = len(there) + len(added)
    for number, each in enumerate([*there, *added]):
        is_there = isinstance(each, GroupMember)
        body[f"members-{number}-user"] = str(each.user_id if is_there else each.pk)
        body[f"members-{number}-group"] = str(group.pk)
        if is_there:
            body[f"members-{number}-id"] = str(each.pk)
    return body | fields


def test_groups_have_members_of_their_organization(operator, alice, bob, mallory):
    group = new_group("Support", alice)
    at = page("group", "change", group.pk)
    assert "alice@example.com" in operator.get(at).content.decode()
    refused = operator.post(at, group_form(group, mallory.user))
    assert "This user is not a member of the organization." in refused.content.decode()
    assert operator.post(at, group_form(group, bob.user)).status_code == 302
    assert {each.user for each in group.members.all()} == {alice.user, bob.user}
    assert {each.organization for each in group.members.all()} == {alice.organization}
    assert operator.post(at, group_form(group, **{"members-0-DELETE": "on"})).status_code == 302
    assert group.members.count() == 1


def test_a_group_is_made_and_renamed_but_does_not_move(operator, alice, mallory):
    empty = {"description": "", "members-TOTAL_FORMS": 0, "members-INITIAL_FORMS": 0}
    body = empty | {"organization": str(alice.organization.pk), "name": "Support"}
    body |= {"members-TOTAL_FORMS": 1, "members-0-user": str(mallory.user.pk)}
    refused = operator.post(page("group", "add"), body)
    assert "This user is not a member of the organization." in refused.content.decode()
    body["members-0-user"] = str(alice.user.pk)
    assert operator.post(page("group", "add"), body).status_code == 302
    group = Group.objects.get()
    assert group.members.get().user == alice.user
    again = operator.post(page("group", "add"), body | {"name": "SUPPORT"})
    assert "A group of the organization has this name already." in again.content.decode()
    other = new_group("Sales", alice)
    at = page("group", "change", other.pk)
    taken = operator.post(at, group_form(other, name="support"))
    assert "A group of the organization has this name already." in taken.content.decode()
    moved = group_form(other, name="Sales!", organization=str(mallory.organization.pk))
    assert operator.post(at, moved).status_code == 302
    other.refresh_from_db()
    assert (other.name, other.organization) == ("Sales!", group.organization)


def test_a_membership_given_to_another_user_leaves_its_groups(operator, alice, bob, mallory):
    group = new_group("Support", alice, bob)
    there = Membership.objects.get(user=bob.user, organization=alice.organization)
    owners = Membership.objects.get(user=alice.user, organization=alice.organization)
    body = {
        "name": "Acme",
        "slug": alice.organization.slug,
        "turn_weight": "1",
        "memberships-TOTAL_FORMS": 2,
        "memberships-INITIAL_FORMS": 2,
    }
    for number, (row, user) in enumerate([(owners, alice.user), (there, mallory.user)]):
        body |= {
            f"memberships-{number}-id": str(row.pk),
            f"memberships-{number}-organization": str(alice.organization.pk),
            f"memberships-{number}-user": str(user.pk),
            f"memberships-{number}-role": row.role,
        }
    answer = operator.post(page("organization", "change", alice.organization.pk), body)
    assert answer.status_code == 302, answer.content.decode()
    there.refresh_from_db()
    assert there.user == mallory.user
    assert [each.user for each in group.members.all()] == [alice.user]


OIDC = {"provider": "openid_connect", "provider_id": "company", "name": "Company", "client_id": "a"}
ADDRESS = '{"server_url": "https://issuer.example"}'


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({**OIDC, "settings": ADDRESS}, set()),
        ({**OIDC, "settings": "{}"}, {"settings"}),
        ({**OIDC, "settings": "not JSON"}, {"settings"}),
        ({**OIDC, "settings": '"https://issuer.example"'}, {"settings"}),
        ({**OIDC, "settings": '{"server_url": ["https://issuer.example"]}'}, {"settings"}),
        ({**OIDC, "settings": '{"server_url": "issuer.example"}'}, {"settings"}),
        ({**OIDC, "settings": ADDRESS, "provider_id": ""}, {"provider_id"}),
    ],
)
def test_an_identity_provider_needs_an_id_and_an_address(operator, given, wrong):
    answer = operator.post(reverse("admin:socialaccount_socialapp_add"), given)
    assert SocialApp.objects.exists() == (not wrong)
    assert (answer.status_code == 302) == (not wrong)
    if wrong:
        assert set(answer.context["adminform"].form.errors) == wrong


def test_an_identity_provider_without_an_address_closes_nobody_s_door(db):
    for wrong in ({}, ["https://issuer.example"], {"server_url": 5}):
        SocialApp.objects.create(
            provider="openid_connect", name="Broken", client_id="a", settings=wrong
        )
    whole = {"settings": {"server_url": "https://issuer.example"}}
    SocialApp.objects.create(**OIDC, **whole)
    answer = Client().get("/_allauth/browser/v1/config")
    assert answer.status_code == 200
    shown = answer.json()["data"]["socialaccount"]["providers"]
    assert [provider["name"] for provider in shown] == ["Company"]


def test_a_deleted_identity_provider_leaves_the_list_of_ones_links(alice):
    company = SocialApp.objects.create(**OIDC, settings={"server_url": "https://issuer.example"})
    SocialAccount.objects.create(user=alice.user, provider="company", uid="1")
    browser = Client()
    browser.force_login(alice.user)
    assert links_of(browser) == ["company"]
    company.delete()
    assert links_of(browser) == []


def links_of(browser: Client) -> list[str]:
    answer = browser.get("/_allauth/browser/v1/account/providers")
    assert answer.status_code == 200, answer.content
    return [link["provider"]["id"] for link in answer.json()["data"]]
