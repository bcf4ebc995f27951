"""Turns get the chosen functions of bound tools, in order, and only while they may be used."""

import pytest

from accounts.group_services import grant_right
from amber.lib.secrets import encrypt_column
from assistants.bound_tools import bound_tools
from assistants.models import Assistant, AssistantTool
from assistants.turn_config import toolbox_of, turn_config_of
from tests.fixtures.personas import OPERATOR, Persona, join, new_group
from tools.calling.result_files import ResultFiles
from tools.calling.toolbox import ToolLimits
from tools.models import Tool
from tools.protocol import ToolContext
from tools.tests.tool_service import function

pytestmark = pytest.mark.django_db


@pytest.fixture
def bound(new_assistant, new_tool):
    """Bind a tool of a persona's: `bound(assistant, persona, "a", "b", chosen=[…])`."""

    def make(assistant, persona, *names, chosen=(), **fields):
        data = {
            "callback_url": "https://weather.example/call",
            "functions": [function(name) for name in names],
        }
        tool = new_tool(persona, data=data, **fields)
        AssistantTool.objects.create(
            organization=assistant.organization,
            assistant=assistant,
            tool=tool,
            functions=list(chosen),
        )
        return tool

    return make


def names_of(assistant: Assistant) -> list[str]:
    return [tool.spec.name for tool in bound_tools(assistant)]


def test_in_the_order_of_the_bindings_then_of_the_data(bob, bound, new_assistant):
    assistant = new_assistant(bob)
    bound(assistant, bob, "z", "a")
    bound(assistant, bob, "m", "b")
    assert names_of(assistant) == ["z", "a", "m", "b"]
    assert names_of(new_assistant(bob)) == []


def test_only_the_chosen_functions_where_some_are(bob, bound, new_assistant):
    assistant = new_assistant(bob)
    bound(assistant, bob, "a", "b", "c", chosen=["c", "a", "gone"])
    assert names_of(assistant) == ["a", "c"]


def test_a_tool_that_is_no_longer_shared_is_gone_from_others(alice, bob, bound, new_assistant):
    hers, his = new_assistant(alice), new_assistant(bob)
    tool = bound(hers, alice, "f", shared=True)
    AssistantTool.objects.create(organization=bob.organization, assistant=his, tool=tool)
    assert names_of(his) == names_of(hers) == ["f"]
    tool.shared = False
    tool.save()
    assert names_of(his) == []
    assert names_of(hers) == ["f"]


def test_nobodys_private_tool_is_not_for_nobodys_assistant(alice, bound, new_assistant):
    """Both creators left; that makes neither the other's."""
    assistant = new_assistant(alice, user=None)
    tool = bound(assistant, alice, "f", user=None)
    assert names_of(assistant) == []
    Tool.objects.filter(pk=tool.pk).update(shared=True)
    assert names_of(assistant) == ["f"]


def test_a_tool_of_another_tenant_is_never_offered(alice, mallory, bound, new_assistant):
    assistant = new_assistant(alice)
    bound(assistant, mallory, "f", shared=True)
    assert names_of(assistant) == []


def test_a_granted_tool_is_offered_to_who_is_in_the_group(
    alice, bob, carol, bound, new_assistant, django_assert_num_queries
):
    """An admin in person counts as one of every group, a guest is in none."""
    dave = join("dave", alice.organization)
    assistant = new_assistant(alice, shared=True)
    grant_right(
        bound(assistant, bob, "f"), group=new_group("Support", dave), right="use", by=OPERATOR
    )

    def offered(persona: Persona | None, *, in_person: bool = True) -> list[str]:
        user_id = persona.user.pk if persona else None
        with django_assert_num_queries(1):
            found = bound_tools(assistant, user_id=user_id, in_person=in_person)
        return [tool.spec.name for tool in found]

    assert offered(dave) == offered(dave, in_person=False) == ["f"]
    assert offered(carol) == ["f"]
    assert offered(carol, in_person=False) == []
    assert offered(bob) == offered(None) == offered(None, in_person=False) == []


def test_a_key_that_cannot_be_read_takes_one_tool_away(bob, bound, new_assistant):
    assistant = new_assistant(bob)
    bound(assistant, bob, "a", api_key_sealed="v1.lost.key")
    tool = bound(assistant, bob, "b")
    encrypt_column(tool, "api_key", "k")
    tool.save()
    assert names_of(assistant) == ["b"]


@pytest.mark.parametrize(
    ("ask_first", "wish", "asks"),
    [
        ([], False, False),
        (["f"], False, True),
        (["g"], False, False),
        (["*"], False, True),
        ([], True, True),
    ],
)
def test_functions_ask_first_if_their_service_or_owner_says_so(
    bob, bound, new_assistant, ask_first, wish, asks
):
    assistant = new_assistant(bob)
    tool = bound(assistant, bob, "f", options={"ask_first": ask_first})
    tool.data["functions"][0]["requires_approval"] = wish
    tool.save()
    (offered,) = bound_tools(assistant)
    assert offered.asks_first is asks


def test_it_takes_one_query(bob, bound, new_assistant, django_assert_num_queries):
    assistant = new_assistant(bob)
    for name in ("a", "b", "c"):
        bound(assistant, bob, name)
    with django_assert_num_queries(1):
        assert names_of(assistant) == ["a", "b", "c"]


def test_built_in_ones_come_first_and_keep_their_names(bob, bound, new_assistant):
    assistant = new_assistant(bob)
    bound(assistant, bob, "forecast", "calculate")
    context = ToolContext(organization_id=bob.organization.pk)
    box = toolbox_of(
        turn_config_of(assistant),
        context=context,
        limits=ToolLimits(timeout_seconds=1, result_tokens=1, count=len),
        files=ResultFiles(context, vision=False),
        bound=bound_tools(assistant),
    )
    names = [spec.name for spec in box.specs]
    assert names[-2:] == ["forecast", "Weather__calculate"]
    assert names.index("calculate") < names.index("forecast")
