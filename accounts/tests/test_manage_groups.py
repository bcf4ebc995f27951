"""Groups over REST: who makes them, who sees them and who is in them, and how they end."""

from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.db import IntegrityError, transaction

from accounts.group_services import add_group_member, create_group, edit_group, grant_right
from accounts.models import Group, GroupMember, Membership
from amber.lib.errors import Conflict
from tests.fixtures.personas import OPERATOR, Persona, api, join, new_group

pytestmark = pytest.mark.django_db

ALL = "/api/v1/groups/"


def one(group: Group) -> str:
    return f"{ALL}{group.pk}/"


def members(group: Group) -> str:
    return f"{one(group)}members/"


def member(group: Group, persona: Persona) -> str:
    return f"{members(group)}{persona.user.pk}/"


def new_tool(persona: Persona, **fields: Any) -> Any:
    """Something to share: accounts knows of no kind by itself."""
    mine = {"organization": persona.organization, "user": persona.user, "name": "Weather"}
    return apps.get_model("tools.Tool").objects.create(**mine | fields)


@pytest.fixture
def group(alice: Persona, bob: Persona) -> Group:
    return new_group("Support", bob)


class TestCreate:
    def test_an_admin_makes_one_with_nobody_in_it(self, carol):
        answer = api(carol).post(ALL, {"name": "Support", "description": "Answers customers."})
        assert answer.status_code == 201
        made = Group.objects.get()
        body = answer.json()
        assert body.pop("created_at") and body.pop("updated_at")
        assert body == {
            "id": str(made.pk),
            "name": "Support",
            "description": "Answers customers.",
            "member_count": 0,
            "is_member": False,
        }
        assert made.organization == carol.organization

    def test_members_and_keys_make_none(self, alice, bob):
        assert api(bob).post(ALL, {"name": "Support"}).status_code == 403
        by_key = api(key=alice.new_key()[1])
        assert by_key.post(ALL, {"name": "Support"}).status_code == 403
        assert api().post(ALL, {"name": "Support"}).status_code == 401
        assert not Group.objects.exists()

    @pytest.mark.parametrize(
        ("field", "value"),
        [("name", ""), ("name", "x" * 201), ("name", "a\0b"), ("description", "x" * 2_001)],
    )
    def test_a_wrong_field_is_named(self, alice, field, value):
        answer = api(alice).post(ALL, {"name": "Support", field: value})
        assert answer.status_code == 400
        assert list(answer.json()["error"]["fields"]) == [field]

    @pytest.mark.parametrize("name", ["Support", "SUPPORT", "support", "Sup\u200bport\u202e"])
    def test_a_name_is_given_once_in_an_organization(self, alice, mallory, group, name):
        answer = api(alice).post(ALL, {"name": name})
        assert (answer.status_code, list(answer.json()["error"]["fields"])) == (409, ["name"])
        assert api(mallory).post(ALL, {"name": name}).status_code == 201


class TestSee:
    def test_every_member_sees_which_groups_there_are(self, alice, bob, carol, mallory, group):
        create_group(alice.organization.pk, name="Sales", by=OPERATOR)
        new_group("Foreign", mallory)

        def listed(client: Any, **query: str) -> list[tuple[str, int, bool]]:
            rows = client.get(ALL, query).json()["results"]
            return [(row["name"], row["member_count"], row["is_member"]) for row in rows]

        assert listed(api(bob)) == [("Sales", 0, False), ("Support", 1, True)]
        assert listed(api(bob), mine="true") == [("Support", 1, True)]
        assert listed(api(carol)) == [("Sales", 0, False), ("Support", 1, False)]
        assert listed(api(key=bob.new_key()[1]), mine="true") == [("Support", 1, True)]
        assert api(bob).get(one(group)).json()["name"] == "Support"
        assert api(mallory).get(one(group)).status_code == 404
        assert api().get(ALL).status_code == 401

    def test_a_list_costs_the_same_for_many(self, alice, bob, django_assert_max_num_queries):
        for number in range(5):
            new_group(f"Group {number}", alice, bob)
        client = api(bob)
        with django_assert_max_num_queries(4):  # session, user, membership, list
            assert len(client.get(ALL).json()["results"]) == 5


class TestChange:
    def test_an_admin_renames_it(self, carol, group):
        answer = api(carol).patch(one(group), {"name": "Help"})
        assert (answer.status_code, answer.json()["name"]) == (200, "Help")
        assert answer.json()["member_count"] == 1
        group.refresh_from_db()
        assert group.name == "Help"
        assert api(carol).patch(one(group), {"name": "HELP"}).status_code == 200

    def test_not_to_the_name_of_another(self, alice, carol, group):
        create_group(alice.organization.pk, name="Sales", by=OPERATOR)
        assert api(carol).patch(one(group), {"name": "sales"}).status_code == 409
        group.refresh_from_db()
        assert group.name == "Support"

    def test_nobody_else_does(self, alice, bob, mallory, group):
        assert api(bob).patch(one(group), {"name": "x"}).status_code == 403
        assert api(key=alice.new_key()[1]).patch(one(group), {"name": "x"}).status_code == 403
        assert api(mallory).patch(one(group), {"name": "x"}).status_code == 404

    def test_two_who_take_a_name_at_once_are_told(self, alice, group):
        with pytest.raises(Conflict):
            create_group(alice.organization.pk, name="support", by=OPERATOR)
        with pytest.raises(Conflict):
            edit_group(
                create_group(alice.organization.pk, name="B", by=OPERATOR),
                changes={"name": "Support"},
                by=OPERATOR,
            )


class TestDelete:
    def test_what_was_shared_with_it_ends_and_is_counted(self, alice, bob, carol, group):
        for tool in (new_tool(alice), new_tool(carol)):
            grant_right(tool, group=group, right="edit", by=OPERATOR)
        answer = api(carol).delete(one(group))
        assert (answer.status_code, answer.json()) == (200, {"ended_grants": 2})
        assert not Group.objects.exists()
        assert api(bob).get("/api/v1/tools/").json()["results"] == []
        assert api(carol).get(one(group)).status_code == 404

    def test_nobody_else_does(self, bob, mallory, group):
        assert api(bob).delete(one(group)).status_code == 403
        assert api(mallory).delete(one(group)).status_code == 404
        assert Group.objects.exists()

    def test_not_while_it_alone_reaches_what_nobody_owns(self, alice, bob, group):
        """Its creator had their data erased: nobody would see it any more, and it would stay."""
        lost, kept = new_tool(alice, user=None, name="Frog"), new_tool(alice)
        for tool in (lost, kept):
            grant_right(tool, group=group, right="use", by=OPERATOR)
        answer = api(alice).delete(one(group))
        assert answer.status_code == 409
        assert "The tool “Frog” has no owner" in answer.json()["error"]["message"]
        at = f"/api/v1/tools/{lost.pk}/"
        assert api(alice).delete(f"{at}grants/{group.pk}/").status_code == 409
        assert (lost.grants.count(), kept.grants.count()) == (1, 1)
        other = create_group(alice.organization.pk, name="Other", by=OPERATOR)
        assert api(alice).put(f"{at}grants/{other.pk}/", {"right": "use"}).status_code == 200
        assert api(alice).delete(one(group)).json() == {"ended_grants": 2}
        assert api(alice).delete(at).status_code == 204


class TestMembers:
    def test_admins_let_members_of_the_organization_in(self, carol, bob, group):
        dave = join("dave", carol.organization)
        for _ in range(2):
            answer = api(carol).put(member(group, dave))
            assert answer.status_code == 200
            assert (
                answer.json().items()
                >= {
                    "user_id": str(dave.user.pk),
                    "email": "dave@example.com",
                    "name": "Dave",
                }.items()
            )
        listed = api(carol).get(members(group)).json()["results"]
        assert [row["name"] for row in listed] == ["Dave", "Bob"]

    def test_nobody_from_outside(self, carol, mallory, group):
        assert api(carol).put(member(group, mallory)).status_code == 404
        assert api(carol).put(f"{members(group)}{uuid4()}/").status_code == 404
        assert GroupMember.objects.count() == 1

    def test_only_admins_do(self, alice, bob, mallory, group):
        dave = join("dave", bob.organization)
        assert api(bob).put(member(group, dave)).status_code == 403
        assert api(dave).put(member(group, dave)).status_code == 403
        assert api(key=alice.new_key()[1]).put(member(group, dave)).status_code == 403
        assert api(mallory).put(member(group, mallory)).status_code == 404

    def test_who_is_in_it_is_for_its_members_and_admins(self, alice, bob, group):
        dave = join("dave", bob.organization)
        assert [row["email"] for row in api(bob).get(members(group)).json()["results"]] == [
            "bob@example.com"
        ]
        assert api(alice).get(members(group)).status_code == 200
        refused = api(dave).get(members(group))
        assert refused.status_code == 403
        assert "Only members of the group" in refused.json()["error"]["message"]
        assert api(key=bob.new_key()[1]).get(members(group)).status_code == 403

    def test_admins_take_somebody_out(self, carol, bob, group):
        assert api(carol).delete(member(group, bob)).status_code == 204
        assert not GroupMember.objects.exists()
        assert api(carol).delete(member(group, bob)).status_code == 404

    def test_one_leaves_and_takes_nobody_out(self, bob, group):
        dave = join("dave", bob.organization)
        membership = Membership.objects.get(user=dave.user, organization=bob.organization)
        add_group_member(group, membership=membership, by=OPERATOR)
        assert api(bob).delete(member(group, dave)).status_code == 403
        assert api(bob).delete(member(group, bob)).status_code == 204
        assert api(bob).delete(member(group, dave)).status_code == 404
        assert GroupMember.objects.get().user == dave.user

    def test_a_membership_that_ended_in_the_same_moment_is_a_conflict(self, alice, bob, group):
        dave = join("dave", alice.organization)
        membership = Membership.objects.get(user=dave.user, organization=alice.organization)
        Membership.objects.filter(pk=membership.pk).delete()
        with pytest.raises(Conflict):
            add_group_member(group, membership=membership, by=OPERATOR)


class TestGrants:
    def test_are_given_changed_listed_and_ended(self, bob, group):
        tool = new_tool(bob)
        at = f"/api/v1/tools/{tool.pk}/grants/"
        for right in ("use", "edit"):
            answer = api(bob).put(f"{at}{group.pk}/", {"right": right})
            assert answer.status_code == 200
            assert (
                answer.json().items()
                >= {
                    "group_id": str(group.pk),
                    "group_name": "Support",
                    "right": right,
                }.items()
            )
        assert [row["right"] for row in api(bob).get(at).json()["results"]] == ["edit"]
        assert api(bob).delete(f"{at}{group.pk}/").status_code == 204
        assert api(bob).delete(f"{at}{group.pk}/").status_code == 404
        assert api(bob).get(at).json()["results"] == []

    @pytest.mark.parametrize("right", ["own", "", None, "read"])
    def test_no_other_right_can_be_granted(self, bob, group, right):
        at = f"/api/v1/tools/{new_tool(bob).pk}/grants/{group.pk}/"
        answer = api(bob).put(at, {"right": right})
        assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["right"])

    def test_no_group_of_another_organization(self, bob, mallory):
        foreign = new_group("Foreign", mallory)
        at = f"/api/v1/tools/{new_tool(bob).pk}/grants/{foreign.pk}/"
        assert api(bob).put(at, {"right": "use"}).status_code == 404

    def test_one_may_share_with_a_group_one_is_not_in(self, alice, bob):
        sales = new_group("Sales", alice)
        at = f"/api/v1/tools/{new_tool(bob).pk}/grants/{sales.pk}/"
        assert api(bob).put(at, {"right": "use"}).status_code == 200

    def test_what_is_deleted_in_the_same_moment_is_a_conflict(self, bob, group):
        tool = new_tool(bob)
        Group.objects.filter(pk=group.pk).delete()
        with pytest.raises(Conflict):
            grant_right(tool, group=group, right="use", by=OPERATOR)


def test_names_differ_in_the_database_too(alice, group):
    with pytest.raises(IntegrityError), transaction.atomic():
        Group.objects.create(organization=alice.organization, name="sUPPORT")
