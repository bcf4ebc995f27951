"""Show operators what tenants connected, refreshed and tried, without keys and people's texts."""

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tools.models import Tool, ToolCallRecord
from tools.services import create_tool
from tools.tests.tool_service import function

pytestmark = pytest.mark.django_db(transaction=True)

MAX_STATEMENTS = 12
PAGES = "/admin/tools/tool/"
LOG = "/admin/tools/toolcallrecord/"
KEY = "key-of-the-weather"


@pytest.fixture
def tool(alice, weather):
    given = {"kind": "discovery", "discovery_url": weather.url, "api_key": KEY}
    return create_tool(alice.principal, given=given)


def call_page(tool: Tool) -> str:
    return f"{PAGES}{tool.pk}/call/"


def refreshed(client: Any, tool: Tool) -> str:
    body = {"action": "refresh_now", "_selected_action": [str(tool.pk)]}
    return str(client.post(PAGES, body, follow=True).content.decode())


def test_lists_and_shows_without_the_key(operator, tool):
    tool.last_error = "It did not answer."
    tool.save()
    listed = operator.get(PAGES).content.decode()
    assert "It did not answer." in listed
    shown = operator.get(f"{PAGES}{tool.pk}/change/").content.decode()
    assert "forecast" in shown
    assert "Try a function" in shown
    for page in (listed, shown):
        assert KEY not in page
        assert tool.api_key_sealed not in page
    assert operator.get(f"{PAGES}add/").status_code == 403
    assert operator.post(f"{PAGES}{tool.pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_tool_without_functions_is_listed_too(operator, alice):
    Tool.objects.create(organization=alice.organization, user=alice.user, name="Empty")
    assert "Empty" in operator.get(PAGES).content.decode()


def test_refreshes_now(operator, tool, weather):
    weather.functions = [function("tornado")]
    assert "Weather was refreshed." in refreshed(operator, tool)
    tool.refresh_from_db()
    assert tool.data["functions"][0]["name"] == "tornado"


def test_a_failed_refresh_says_why(operator, tool, weather):
    weather.fields = {"name": ""}
    assert "This must not be empty." in refreshed(operator, tool)
    Tool.objects.update(discovery_url="")
    assert "made from a pasted document" in refreshed(operator, tool)


def test_tries_a_function_and_shows_the_exchange(operator, tool, weather):
    weather.reply = lambda body: {"content": f"Sunny in {body['arguments']['city']} <b>{KEY}</b>"}
    assert operator.get(call_page(tool)).status_code == 200
    body = {"function": "forecast", "arguments": '{"city": "Rome"}'}
    page = operator.post(call_page(tool), body).content.decode()
    assert "Sunny in Rome &lt;b&gt;" in page
    assert weather.address("/call") in page
    assert KEY not in page
    assert ToolCallRecord.objects.get().is_test


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"function": "tornado", "arguments": "{}"}, "tornado is not one of the available"),
        ({"function": "forecast", "arguments": "[1]"}, "must be one JSON object"),
        ({"function": "forecast", "arguments": '{"city": 5}'}, "not of type"),
    ],
    ids=["unknown", "list", "unfit"],
)
def test_what_is_wrong_with_a_test_call_is_said(operator, tool, weather, body, words):
    assert words in operator.post(call_page(tool), body).content.decode()
    assert not weather.calls


FORECAST = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where it is."},
        "days": {"type": "integer", "minimum": 1},
        "stations": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
}
NO_ARGUMENTS = {"type": "object", "properties": {}}


@pytest.fixture
def described(alice, weather):
    weather.functions = [function(parameters=FORECAST), function("all", parameters=NO_ARGUMENTS)]
    given = {"kind": "discovery", "discovery_url": weather.url}
    return create_tool(alice.principal, given=given)


def control(page: str, name: str) -> str:
    """Return the name of the control that has this label."""
    found = re.search(f'<label for="(.*?)">{name} ', page) or re.search(
        f'<fieldset[^>]*id="([^"]*)">\\s*<legend>{name} ', page
    )
    assert found, name
    return found[1]


def test_the_page_of_a_tool_tells_what_its_functions_take(
    operator, described, django_assert_max_num_queries
):
    change = f"{PAGES}{described.pk}/change/"
    operator.get(change)
    with django_assert_max_num_queries(MAX_STATEMENTS):
        page = operator.get(change).content.decode()
    for words in ("Where it is.", "whole number", "at least 1", "list of text", "no arguments"):
        assert words in page
    assert f"{call_page(described)}?function=all" in page


def test_a_function_is_called_by_a_form_of_its_schema(operator, described, weather):
    page = operator.get(call_page(described), {"function": "forecast"}).content.decode()
    city, days, stations = (control(page, name) for name in ("city", "days", "stations"))
    body = {"mode": "fields", "function": "forecast", city: "Rome", days: ""}
    longer = operator.post(call_page(described), body | {"add": stations}).content.decode()
    assert f'name="{stations}.0"' in longer
    assert not weather.calls
    body |= {f"{stations}.n": "1", f"{stations}.0": "North", days: "many"}
    refused = operator.post(call_page(described), body).content.decode()
    assert "This is not a whole number" in refused
    refused = operator.post(call_page(described), body | {days: "0"}).content.decode()
    assert "days: 0 is less than the minimum of 1" in refused
    assert not weather.calls
    done = operator.post(call_page(described), body | {days: "3"}).content.decode()
    assert "Received" in done
    [called] = weather.called
    assert called["arguments"] == {"city": "Rome", "days": 3, "stations": ["North"]}
    assert "&quot;days&quot;: 3" in done


def test_json_that_a_form_can_say_fills_it(operator, described):
    body = {"function": "forecast", "arguments": '{"city": "Rome", "days": 2}'}
    page = operator.post(call_page(described), body).content.decode()
    assert f'name="{control(page, "days")}" value="2"' in page
    body["arguments"] = '{"city": "Rome", "more": 1}'
    page = operator.post(call_page(described), body).content.decode()
    assert "The form cannot show these arguments." in page


def test_a_tool_without_functions_says_so(operator, alice):
    tool = Tool.objects.create(organization=alice.organization, user=alice.user, name="Empty")
    for answer in (
        operator.get(call_page(tool)),
        operator.post(call_page(tool), {"mode": "fields"}),
    ):
        assert "This tool has no functions." in answer.content.decode()


def test_a_key_that_cannot_be_read_is_said_to_be_so(operator, tool):
    Tool.objects.update(api_key_sealed="v1.lost.key")
    page = operator.post(call_page(tool), {"function": "forecast", "arguments": ""})
    assert "key cannot be read" in page.content.decode()


def test_the_log_is_a_page_nobody_changes(operator, tool):
    operator.post(call_page(tool), {"function": "forecast", "arguments": '{"city": "Rome"}'})
    line = ToolCallRecord.objects.get()
    page = operator.get(LOG).content.decode()
    assert "forecast" in page
    assert "Rome" not in page
    assert operator.get(LOG, {"q": str(tool.pk)}).status_code == 200
    assert operator.get(f"{LOG}{line.pk}/change/").status_code == 200
    assert operator.get(f"{LOG}add/").status_code == 403


def test_only_operators_with_the_right_get_in(alice, tool, weather):
    client = Client()
    client.force_login(alice.user)
    assert client.get(call_page(tool)).status_code == 302
    staff = User.objects.create_user("staff@example.com", is_staff=True)
    client.force_login(staff)
    assert client.get(call_page(tool)).status_code == 403
    assert client.post(call_page(tool), {"function": "forecast"}).status_code == 403
    assert not weather.calls
