"""Tools, by what a person does with them: connect a service, look at it, try it, read the log."""

from collections.abc import Iterator

import pytest

from tools.tests.tool_service import ToolService, function, serving

pytestmark = pytest.mark.e2e

SMALL = {"width": 390, "height": 800}


@pytest.fixture
def service() -> Iterator[ToolService]:
    with serving() as tool:
        tool.functions = [function()]
        tool.reply = lambda _: {"content": "sunny"}
        yield tool


def connect(person, service):
    return person.post("tools/", {"kind": "discovery", "discovery_url": service.url})


def test_a_service_is_connected_and_a_function_tried(visit, person, service):
    here = visit().open("/tools")
    here.sees("Services that assistants may call")
    here.is_accessible()
    here.button("Connect a service").click()
    here.dialog.get_by_label("Kind").select_option("discovery")
    here.dialog.get_by_label("Address", exact=True).fill(service.url)
    here.is_accessible()
    here.button("Connect").click()
    here.page.wait_for_url("**/tools/0*")
    here.page.get_by_role("heading", name="Functions").wait_for()
    name = service.functions[0]["name"]
    here.page.locator("code", has_text=name).first.wait_for()
    here.page.get_by_label("Arguments (JSON)").fill('{"city": "Rome"}')
    here.button("Call").click()
    here.page.get_by_text("Call succeeded").first.wait_for()
    here.page.locator("pre", has_text="sunny").first.wait_for()
    here.page.locator("table").get_by_text("test").wait_for()
    here.is_accessible()


def test_what_is_not_json_is_not_sent(visit, person, service):
    here = visit(viewport=SMALL).open(f"/tools/{connect(person, service)['id']}")
    here.page.get_by_label("Arguments (JSON)").fill("city = Rome")
    here.button("Call").click()
    here.sees("The arguments are not valid JSON.")
    here.is_accessible()
    assert not service.calls


def test_a_function_is_made_to_ask_first(visit, person, service):
    made = connect(person, service)
    name = made["function_names"][0]
    here = visit().open(f"/tools/{made['id']}")
    here.page.get_by_label(f"Ask for approval before each call: {name}").check()
    here.page.wait_for_timeout(500)
    assert person.get(f"tools/{made['id']}/")["options"]["ask_first"] == [name]


def test_an_address_that_answers_nothing_is_told(visit, service):
    here = visit().open("/tools")
    here.button("Connect a service").click()
    here.dialog.get_by_label("Kind").select_option("mcp")
    here.dialog.get_by_label("Address", exact=True).fill(service.url + "/nothing")
    here.button("Connect").click()
    here.dialog.get_by_role("alert").wait_for()
    here.is_accessible()


def test_an_assistant_is_given_a_tool(visit, person, service):
    made = connect(person, service)
    assistant = person.assistant("With tools")
    here = visit().open(f"/assistants/{assistant}")
    here.page.get_by_role("checkbox", name=made["name"]).first.check()
    here.page.wait_for_timeout(500)
    (bound,) = person.get(f"assistants/{assistant}/tools/")["results"]
    assert bound["tool_id"] == made["id"]


def test_a_tool_is_deleted(visit, person, service):
    made = connect(person, service)
    here = visit().open(f"/tools/{made['id']}")
    here.button(f"Actions for the tool {made['name']}").click()
    here.select("Delete")
    here.dialog.get_by_role("button", name="Delete").click()
    here.page.wait_for_url("**/tools")
    assert made["id"] not in [each["id"] for each in person.get("tools/")["results"]]
