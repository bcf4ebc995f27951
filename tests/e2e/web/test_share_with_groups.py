"""Groups on the page: an owner keeps them, shares what is theirs, and a colleague uses it until they leave."""

from collections.abc import Iterator

import pytest

from amber.processes import wait_until
from tests.e2e.kit.sessions import new_account, signed_in
from tests.e2e.web.visitor import Person
from tools.tests.tool_service import ToolService, function, serving

pytestmark = pytest.mark.e2e

SMALL = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def colleague(person, organization):
    """Somebody else in the organization, a mere member."""
    email = new_account(person.platform, "carla")
    path = f"organizations/{organization}/invitations/"
    invitation = person.post(path, {"email": email, "role": "member"})
    with signed_in(person.platform, email) as http:
        colleague = Person(person.platform, email, http)
        colleague.post("invitations/accept/", {"token": invitation["token"]})
        colleague.put("me/organization/", {"organization_id": organization})
        yield colleague


@pytest.fixture
def service() -> Iterator[ToolService]:
    with serving() as tool:
        tool.functions = [function()]
        yield tool


def new_row(person, kind, service):
    if kind == "tools":
        return person.post("tools/", {"kind": "discovery", "discovery_url": service.url})
    return person.post(f"{kind}/", {"name": f"Resin {kind}"})


def new_group(person, name, *members):
    group = person.post("groups/", {"name": name})
    for member in members:
        person.put(f"groups/{group['id']}/members/{member.get('me/')['id']}/", {})
    return group["id"]


def access_of(person, address):
    """What the person may do with the row there; None if they do not see it."""
    return person.http.get(address).json().get("access")


def comes_to_have(person, access, address):
    return wait_until(lambda: access_of(person, address) == access, timeout_seconds=20)


def test_a_group_is_made_filled_renamed_and_deleted(visit, person, colleague):
    here = visit().open("/settings/groups")
    here.sees("No groups yet.")
    here.is_accessible()
    here.page.get_by_label("Name").fill("Chemists")
    here.button("Create").click()
    here.button("Actions for the group Chemists").click()
    here.select("Members")
    here.dialog.get_by_text("This group has no members yet.").wait_for()
    here.is_accessible()
    here.dialog.get_by_label("Add to the group").select_option(label=colleague.email)
    here.dialog.get_by_role("button", name="Add").click()
    here.button(f"Remove: {colleague.email}").wait_for()
    here.is_accessible()
    here.press("Escape")
    here.sees("1 member")
    here.button("Actions for the group Chemists").click()
    here.select("Edit")
    here.dialog.get_by_label("Name").fill("Resin chemists")
    here.button("Save").click()
    here.sees("Resin chemists")
    here.button("Actions for the group Resin chemists").click()
    here.select("Members")
    here.button(f"Remove: {colleague.email}").click()
    here.dialog.get_by_text("This group has no members yet.").wait_for()
    here.press("Escape")
    here.button("Actions for the group Resin chemists").click()
    here.select("Delete")
    here.dialog.get_by_role("button", name="Delete").click()
    here.sees("No groups yet.")
    assert not person.get("groups/")["results"]


@pytest.mark.parametrize("kind", ["assistants", "libraries", "tools"])
def test_what_one_owns_is_shared_with_a_group(visit, person, colleague, service, kind):
    new_group(person, f"Users of {kind}", colleague)
    row = new_row(person, kind, service)
    address = f"/api/v1/{kind}/{row['id']}/"
    assert access_of(colleague, address) is None
    here = visit().open(f"/{kind}/{row['id']}")
    here.page.locator(".page-head .icon-button").click()
    here.select("Share with groups")
    right = here.dialog.get_by_label(f"Access for Users of {kind}")
    assert right.input_value() == ""
    here.is_accessible()
    for chosen in ("use", "edit"):
        right.select_option(chosen)
        assert comes_to_have(colleague, chosen, address)
    here.page.reload()
    here.page.locator(".page-head .icon-button").click()
    here.select("Share with groups")
    right = here.dialog.get_by_label(f"Access for Users of {kind}")
    assert right.input_value() == "edit"
    right.select_option("")
    assert comes_to_have(colleague, None, address)


def test_a_member_sees_their_group_and_leaves_it(visit, person, colleague):
    group = new_group(person, "Readers", colleague)
    here = visit(who=colleague, viewport=SMALL).open("/settings/groups")
    here.sees("you are a member")
    assert not here.page.get_by_label("Name").count(), "only admins make groups"
    here.is_accessible()
    here.button("Actions for the group Readers").click()
    here.select("Members")
    here.dialog.get_by_text(colleague.email).first.wait_for()
    assert not here.dialog.get_by_role("button", name="Remove").count()
    here.press("Escape")
    here.button("Actions for the group Readers").click()
    here.select("Leave")
    here.sees("You left “Readers”.")
    assert person.get(f"groups/{group}/")["member_count"] == 0
