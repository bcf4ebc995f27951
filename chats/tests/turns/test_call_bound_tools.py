"""Test turns whose model calls functions of stored tools, on a real service on loopback."""

from typing import Any

import pytest

from assistants.models import Assistant, AssistantTool
from assistants.services import bind_tool
from chats import approval_services as services
from chats.models import Chat, ChatMessage
from chats.tests.rows import new_assistant, new_chat, path_of
from chats.tests.runs import ask_in, assert_stored_is_what_was_streamed, marker, run
from engine.events import TurnStatus
from tests.fixtures.personas import OPERATOR, api
from tools.models import Tool, ToolCallRecord
from tools.services import create_tool, refresh_tool, update_tool
from tools.tests.tool_service import function

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "key-of-the-weather"


@pytest.fixture(autouse=True)
def only_our_tools(monkeypatch):
    monkeypatch.setattr("tools.calling.registry._tools", {})


@pytest.fixture
def tool(alice, weather):
    given = {"kind": "discovery", "discovery_url": weather.url, "api_key": KEY, "shared": True}
    return create_tool(alice.principal, given=given)


@pytest.fixture
def chat(alice, tool, new_model):
    new_model()
    assistant = new_assistant(alice, model="fake-model", untrusted_calls="allow")
    bind_tool(assistant, tool=tool)
    return new_chat(alice, assistant=assistant)


def ask(chat: Chat, persona: Any, name: str = "forecast", **arguments: Any) -> Any:
    """Run the turn of a question that makes the model call this function."""
    turn = ask_in(chat, persona, marker(name, arguments))
    assert run(turn) == TurnStatus.COMPLETED
    return turn


def offered_in(turn: Any) -> list[str]:
    turn.refresh_from_db()
    return [each["name"] for each in turn.manifest["tools"]]


def results() -> list[str]:
    return [m.content for m in ChatMessage.objects.filter(role="tool").order_by("created_at")]


def test_the_model_calls_a_function_and_answers(chat, alice, weather, tool):
    weather.reply = lambda body: {"content": f"Sunny in {body['arguments']['city']}."}
    turn = ask(chat, alice, city="Rome")
    assert [role for role, _ in path_of(chat)] == ["human", "tool_call", "tool", "assistant"]
    assert results() == ["Sunny in Rome."]
    assert_stored_is_what_was_streamed(turn)
    (body,), (request,) = weather.called, weather.calls
    assert (body["function"], body["arguments"]) == ("forecast", {"city": "Rome"})
    assert body["context"] == {
        "organization_id": str(alice.organization.pk),
        "user_id": str(alice.user.pk),
        "chat_id": str(chat.pk),
        "assistant_id": str(chat.assistant_id),
        "turn_id": str(turn.pk),
    }
    result = ChatMessage.objects.get(role="tool")
    assert result.tool_call is not None
    call_id = result.tool_call["id"]
    assert request.headers["idempotency-key"] == body["call_id"] == f"{turn.pk}:{call_id}"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert offered_in(turn) == ["forecast"]


def test_the_call_is_logged_for_the_tools_owner(chat, alice, bob, tool):
    turn = ask(chat, alice, city="Rome")
    (line,) = api(alice).get(f"/api/v1/tools/{tool.pk}/calls/").json()["results"]
    assert (line["outcome"], line["is_test"]) == ("ok", False)
    assert (line["turn_id"], line["assistant_id"]) == (str(turn.pk), str(chat.assistant_id))
    assert "Rome" not in str(line)
    assert api(bob).get(f"/api/v1/tools/{tool.pk}/calls/").status_code == 403


def test_a_declined_call_is_logged_and_not_sent(chat, alice, weather, tool):
    update_tool(tool, changes={"options": {"ask_first": ["forecast"]}}, by=OPERATOR)
    turn = ask_in(chat, alice, marker("forecast", {"city": "Rome"}))
    assert run(turn) == TurnStatus.WAITING
    assert not ToolCallRecord.objects.exists()
    (waiting,) = turn.waiting_calls
    services.approve_calls(turn, alice.principal, {waiting["call_id"]: False})
    assert run(turn) == TurnStatus.COMPLETED
    assert not weather.calls
    calls = f"/api/v1/tools/{tool.pk}/calls/?outcome=declined"
    (line,) = api(alice).get(calls).json()["results"]
    assert (line["function"], line["call_id"]) == ("forecast", waiting["call_id"])
    assert (line["turn_id"], line["is_test"]) == (str(turn.pk), False)


def test_wrong_arguments_are_told_to_the_model_and_not_sent(chat, alice, weather):
    ask(chat, alice, city=5)
    assert results() == ["city: 5 is not of type 'string'"]
    assert not weather.calls
    assert ToolCallRecord.objects.get().outcome == "refused"


def test_a_changed_schema_takes_effect_at_the_next_turn(chat, alice, weather, tool):
    ask(chat, alice, city="Rome")
    number = {"type": "object", "properties": {"city": {"type": "integer"}}}
    weather.functions = [function(parameters=number), function("tornado")]
    refresh_tool(Tool.objects.get())
    turn = ask(chat, alice, city=5)
    assert offered_in(turn) == ["forecast", "tornado"]
    assert [body["arguments"] for body in weather.called] == [{"city": "Rome"}, {"city": 5}]


def test_a_service_that_moved_is_found_where_it_is_now(chat, alice, weather, tool):
    weather.route("/moved", weather.server.routes["/call"])
    weather.fields = {"callback_url": weather.address("/moved")}
    refresh_tool(Tool.objects.get())
    ask(chat, alice, city="Rome")
    assert weather.server.requests[-1].target == "/moved"


def test_what_is_no_longer_shared_is_gone_from_others_assistants(chat, alice, bob, weather, tool):
    his = new_assistant(bob, model="fake-model", untrusted_calls="allow")
    bind_tool(his, tool=tool)
    other_chat = new_chat(bob, assistant=his)
    ask(other_chat, bob, city="Rome")
    assert len(weather.calls) == 1
    update_tool(Tool.objects.get(), changes={"shared": False}, by=OPERATOR)
    turn = ask(other_chat, bob, city="Rome")
    assert (offered_in(turn), len(weather.calls)) == ([], 1)
    ask(chat, alice, city="Rome")
    assert len(weather.calls) == 2


def test_a_tool_taken_away_is_gone_with_the_next_turn(chat, alice, weather):
    ask(chat, alice, city="Rome")
    AssistantTool.objects.all().delete()
    ask(chat, alice, city="Rome")
    assert len(weather.calls) == 1


def test_a_bare_model_has_none_of_them(chat, alice):
    turn = ask_in(chat, alice, "Hi")
    Assistant.objects.all().delete()
    run(turn)
    assert offered_in(turn) == []
