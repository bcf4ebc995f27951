from uuid import UUID, uuid4

import pytest

from accounts.group_services import grant_right
from assistants.models import Assistant, AssistantTool
from tests.fixtures.personas import OPERATOR, api, new_group

pytestmark = pytest.mark.django_db


def bindings(assistant: Assistant) -> str:
    return f"/api/v1/assistants/{assistant.pk}/tools/"


@pytest.fixture
def assistant(bob, new_assistant):
    return new_assistant(bob)


@pytest.fixture
def tool(bob, new_tool):
    functions = [{"name": "get"}, {"name": "set"}]
    return new_tool(
        bob,
        description="Says the weather.",
        api_key_sealed="sealed",
        data={"functions": functions},
    )


@pytest.fixture
def one(assistant, tool):
    """Return the address of the binding of the two."""
    AssistantTool.objects.create(
        organization=assistant.organization, assistant=assistant, tool=tool, functions=["get"]
    )
    return f"{bindings(assistant)}{tool.pk}/"


def test_binds_a_tool(bob, assistant, tool):
    body = {"tool_id": str(tool.pk), "functions": ["get", "set", "get"]}
    answer = api(bob).post(bindings(assistant), body)
    assert answer.status_code == 201
    binding = AssistantTool.objects.get()
    assert (binding.assistant, binding.tool, binding.organization) == (
        assistant,
        tool,
        bob.organization,
    )
    shown = answer.json()
    assert (shown["id"], shown["tool_id"]) == (str(binding.pk), str(tool.pk))
    assert shown["functions"] == ["get", "set"]
    assert shown["tool"] == {
        "id": str(tool.pk),
        "name": "Weather",
        "description": "Says the weather.",
        "kind": "discovery",
    }


def test_all_functions_are_meant_where_none_is_named(bob, assistant, tool):
    answer = api(bob).post(bindings(assistant), {"tool_id": str(tool.pk)})
    assert answer.json()["functions"] == []


def test_lists_an_assistants_own(bob, assistant, tool, one, new_assistant):
    client = api(bob)
    listed = client.get(bindings(assistant)).json()["results"]
    assert [row["tool_id"] for row in listed] == [str(tool.pk)]
    assert client.get(bindings(new_assistant(bob))).json()["results"] == []


def test_a_tool_is_bound_once(bob, assistant, tool, one):
    answer = api(bob).post(bindings(assistant), {"tool_id": str(tool.pk)})
    assert answer.status_code == 409
    assert list(answer.json()["error"]["fields"]) == ["tool_id"]


def test_a_tool_must_be_visible(alice, bob, mallory, assistant, new_tool):
    def status(tool_id: UUID) -> int:
        body = {"tool_id": str(tool_id)}
        return int(api(bob).post(bindings(assistant), body).status_code)

    assert status(new_tool(alice, shared=True).pk) == 201
    assert status(new_tool(alice).pk) == 404
    assert status(new_tool(mallory, shared=True).pk) == 404
    assert status(uuid4()) == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "tool_id"),
        ({"tool_id": "x"}, "tool_id"),
        ({"tool_id": None}, "tool_id"),
        ({"tool_id": str(uuid4()), "functions": "get"}, "functions"),
        ({"tool_id": str(uuid4()), "functions": [""]}, "functions.0"),
        ({"tool_id": str(uuid4()), "functions": ["f"] * 129}, "functions"),
    ],
)
def test_a_wrong_field_is_named(bob, assistant, body, field):
    answer = api(bob).post(bindings(assistant), body)
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [field]


def test_other_functions_can_be_chosen(bob, one):
    answer = api(bob).patch(one, {"functions": ["set"]})
    assert (answer.status_code, answer.json()["functions"]) == (200, ["set"])
    assert AssistantTool.objects.get().functions == ["set"]
    assert api(bob).patch(one, {}).status_code == 400


def test_functions_the_tool_does_not_have_are_named(bob, assistant, tool, one, new_assistant):
    body = {"tool_id": str(tool.pk), "functions": ["get", "jump", "sing"]}
    for answer in (
        api(bob).post(bindings(new_assistant(bob)), body),
        api(bob).patch(one, {"functions": ["get", "jump", "sing"]}),
    ):
        assert answer.status_code == 400
        (said,) = answer.json()["error"]["fields"]["functions"]
        assert "jump, sing" in said
        assert "get, set" in said
    assert AssistantTool.objects.get().functions == ["get"]


def test_a_private_tool_of_another_is_not_for_a_shared_assistant(
    alice, carol, new_assistant, new_tool
):
    """No turn would use it, as its owner did not share it."""
    shared, private = new_assistant(alice, shared=True), new_tool(carol)
    body = {"tool_id": str(private.pk)}
    answer = api(carol).post(bindings(shared), body)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["tool_id"])
    private.shared = True
    private.save()
    assert api(carol).post(bindings(shared), body).status_code == 201


def test_a_tool_that_a_group_was_granted_is_for_the_assistants_of_its_members(
    alice, bob, carol, new_assistant, new_tool
):
    """Turns use it for those who are in the group."""
    mine, granted = new_assistant(bob), new_tool(alice)
    body = {"tool_id": str(granted.pk)}
    assert api(bob).post(bindings(mine), body).status_code == 404
    grant_right(granted, group=new_group("Support", bob), right="use", by=OPERATOR)
    assert api(bob).post(bindings(mine), body).status_code == 201


def test_who_may_edit_an_assistant_gets_no_more_of_its_owners_private_tool(
    alice, bob, carol, assistant, tool, one
):
    """The owner lets the assistant get, and not set; whoever edits it does not see the tool."""
    grant_right(assistant, group=new_group("Editors", carol), right="edit", by=OPERATOR)
    client = api(carol)
    for more in (["set"], ["get", "set"], []):
        assert client.patch(one, {"functions": more}).status_code == 403
    assert AssistantTool.objects.get().functions == ["get"]
    AssistantTool.objects.update(functions=["get", "set"])
    assert client.patch(one, {"functions": ["set"]}).status_code == 200
    grant_right(tool, group=new_group("Seers", carol), right="use", by=OPERATOR)
    assert client.patch(one, {"functions": []}).status_code == 200


def test_a_tool_is_taken_away(bob, one):
    assert api(bob).delete(one).status_code == 204
    assert not AssistantTool.objects.exists()
    assert api(bob).delete(one).status_code == 404


def test_keys_of_tools_are_not_shown(bob, assistant, one):
    shown = api(bob).get(bindings(assistant)).content.decode()
    assert "sealed" not in shown
    assert "weather.example" not in shown


def test_members_see_a_shared_assistants_tools_and_change_none(alice, bob, assistant, tool, one):
    Assistant.objects.update(shared=True, user=alice.user)
    client = api(bob)
    assert client.get(bindings(assistant)).status_code == 200
    assert client.post(bindings(assistant), {"tool_id": str(tool.pk)}).status_code == 403
    assert client.patch(one, {"functions": []}).status_code == 403
    assert client.delete(one).status_code == 403
    assert api(alice).delete(one).status_code == 204


def test_another_tenant_gets_404(mallory, assistant, one, new_tool):
    Assistant.objects.update(shared=True, public=True)
    client = api(mallory)
    body = {"tool_id": str(new_tool(mallory).pk)}
    assert client.get(bindings(assistant)).status_code == 404
    assert client.post(bindings(assistant), body).status_code == 404
    assert client.patch(one, {"functions": []}).status_code == 404
    assert client.delete(one).status_code == 404


def test_nobody_gets_401(assistant, one):
    client = api()
    assert client.get(bindings(assistant)).status_code == 401
    assert client.post(bindings(assistant), {}).status_code == 401
    assert client.patch(one, {}).status_code == 401
    assert client.delete(one).status_code == 401
