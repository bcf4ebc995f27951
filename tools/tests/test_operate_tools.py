"""Show operators what tenants connected, refreshed and tried, without keys and people's texts."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tools.models import Tool, ToolCallRecord
from tools.services import create_tool
from tools.tests.tool_service import function

pytestmark = pytest.mark.django_db(transaction=True)

PAGES = "/admin/tools/tool/"
LOG = "/admin/tools/toolcallrecord/"
KEY = "key-of-the-weather"


@pytest.fixture
def operator(db):
    client = Client()
    client.force_login(User.objects.create_superuser("operator@example.com"))
    return client


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
