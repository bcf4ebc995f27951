"""Groups and grants as the database keeps them: in one organization, and no longer than it lasts."""

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.closing import close_account, close_organization
from accounts.group_services import add_group_member
from accounts.models import GroupMember, Membership, Role
from assistants.models import AssistantGrant
from libraries.models import Library, LibraryGrant
from tests.fixtures.personas import OPERATOR, Persona, api, new_group
from tests.tenancy.test_group_rights import ADDRESSES, KINDS, standing_world, world
from tests.tenancy.test_tenancy import no_rates, standing_people
from tools.models import ToolGrant

__all__ = ["no_rates", "standing_people", "standing_world", "world"]

pytestmark = pytest.mark.django_db


def test_group_and_row_are_of_one_organization(world):
    mallory = world.people["mallory"]
    foreign = new_group("Foreign", mallory)
    models = {"assistant": AssistantGrant, "library": LibraryGrant, "tool": ToolGrant}
    for kind, model in models.items():
        for organization in (mallory.organization, world.people["bob"].organization):
            with pytest.raises(IntegrityError), transaction.atomic():
                model.objects.create(
                    organization=organization, group=foreign, **{kind: world.rows[kind]}
                )


def test_only_members_of_the_organization_are_in_a_group(world):
    mallory = world.people["mallory"]
    for organization in (mallory.organization, world.people["bob"].organization):
        with pytest.raises(IntegrityError), transaction.atomic():
            GroupMember.objects.create(
                organization=organization, group=world.groups["users"], user=mallory.user
            )


def in_groups(persona: Persona) -> int:
    return GroupMember.objects.filter(user=persona.user).count()


def test_membership_of_groups_ends_with_that_of_the_organization_however_it_ends(world):
    people = world.people
    membership = Membership.objects.get(
        user=people["both"].user, organization=people["both"].organization
    )
    assert in_groups(people["both"]) == 2
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM accounts_membership WHERE id = %s", [membership.pk])
    assert in_groups(people["both"]) == 0
    close_account(people["uses"].user)
    assert in_groups(people["uses"]) == 0
    assert GroupMember.objects.exists()
    close_organization(people["alice"].organization)
    assert not GroupMember.objects.exists()


def test_somebody_who_comes_back_is_in_no_group(world):
    gone = join_again(world.people["gone"])
    assert in_groups(gone) == 0
    assert api(gone).get(f"/api/v1/tools/{world.rows['tool'].pk}/").status_code == 404


def join_again(persona: Persona) -> Persona:
    Membership.objects.create(
        organization=persona.organization, user=persona.user, role=Role.MEMBER
    )
    return persona


def test_a_deleted_row_takes_its_grants_along(world):
    for kind in KINDS:
        at = f"/api/v1/{ADDRESSES[kind]}/{world.rows[kind].pk}/"
        assert api(world.people["bob"]).delete(at).status_code == 204
    for model in (AssistantGrant, LibraryGrant, ToolGrant):
        assert not model.objects.exists()
    assert Library.objects.filter(deleted_at__isnull=False).exists()


def test_two_tries_of_add_are_one(world):
    membership = Membership.objects.get(
        user=world.people["uses"].user, organization=world.people["uses"].organization
    )
    add_group_member(world.groups["users"], membership=membership, by=OPERATOR)
    assert in_groups(world.people["uses"]) == 1
