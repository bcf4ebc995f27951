"""An operator's page of an assistant: tabs by keyboard, and a conversation that tries it."""

import json

import pytest

from tests.e2e.kit.axe import AXE
from tests.e2e.kit.browser import expect
from tests.e2e.kit.sessions import new_account, signed_in
from tests.e2e.web.visitor import Person, Visitor, call, mark, say

pytestmark = pytest.mark.e2e

OURS = [".assistant-tabs", ".assistant-trial"]
TABS = ["Basics", "Model", "Tools", "Library", "Scenes", "Access", "Quality"]


@pytest.fixture(scope="module")
def operator(running_platform):
    running_platform.restore()
    email = new_account(running_platform, "olga")
    sql = (
        "UPDATE accounts_user SET is_staff = true, is_superuser = true WHERE email = %s RETURNING 1"
    )
    assert running_platform.query(sql, email)
    with signed_in(running_platform, email) as http:
        yield Person(running_platform, email, http)


def page_of(assistant: str) -> str:
    return f"/admin/assistants/assistant/{assistant}/change/"


def ask(here: Visitor, question: str, exchanges: int) -> None:
    """Asks with the keyboard, and waits until the turn has ended, well or not."""
    here.page.locator("#try-content").fill(question)
    here.press("Enter")
    ended = here.page.locator(".try-manifest:not([hidden])")
    ended.nth(exchanges - 1).wait_for()


def test_tabs_are_reached_by_keyboard_and_stay_open(visit, person, operator):
    here = visit(who=operator).open(page_of(person.assistant("Tabbed")))
    tabs = here.page.get_by_role("tab")
    tabs.first.wait_for()
    assert [text.strip() for text in tabs.all_inner_texts()] == TABS
    panels = here.page.locator("[role=tabpanel]:visible")
    expect(panels).to_have_count(1)
    tabs.first.focus()
    here.press("ArrowRight")
    here.has_focus("tab-model")
    assert panels.get_attribute("id") == "panel-model"
    here.press("Tab")
    here.has_focus("panel-model")
    here.page.locator("#tab-model").focus()
    here.press("End")
    here.has_focus("tab-quality")
    here.press("ArrowLeft")
    here.press("ArrowLeft")
    here.press("ArrowLeft")
    here.has_focus("tab-library")
    here.page.get_by_role("button", name="Save and continue editing").click()
    here.sees("was changed successfully")
    here.page.locator("#tab-library[aria-selected=true]").wait_for()


def test_an_assistant_is_tried_beside_its_form(visit, person, operator):
    once = call("calculate", {"expression": "6 * 0.75"}).replace("]]", " ") + say("It is 4.5.")[7:]
    here = visit(who=operator).open(page_of(person.assistant("Tried")))
    ask(here, f"How much? {once}", 1)
    exchange = here.page.locator(".try-exchange").last
    expect(exchange.locator(".try-answer")).to_have_text("It is 4.5.")
    expect(exchange.locator(".try-facts")).to_contain_text("tokens in")
    exchange.locator(".try-calls summary").click()
    assert json.loads(exchange.locator(".try-arguments").inner_text())
    expect(exchange.locator(".try-result")).to_have_text("4.5")
    exchange.locator(".try-manifest > summary").click()
    exchange.locator(".turn-bar").wait_for()
    exchange.get_by_text("Tool calculate").wait_for()
    is_accessible(here)

    ask(here, f"And then? {say('Nothing.')}", 2)
    sent = operator.platform.query(
        "SELECT input FROM chats_turn WHERE chat_id IS NULL ORDER BY created_at DESC LIMIT 1"
    )
    said = [each["content"] for each in sent[0][0]["messages"]]
    assert said[1] == "It is 4.5."
    assert len(said) == 3

    here.button("New conversation").click()
    expect(here.page.locator(".try-exchange")).to_have_count(0)
    here.has_focus("try-content")


def test_what_goes_wrong_is_said_in_words(visit, person, operator):
    failing = person.assistant("Refused", model="fake-401")
    here = visit(who=operator).open(f"/admin/chats/turn/try/{failing}/")
    ask(here, "Hello", 1)
    facts = here.page.locator(".try-facts.try-error")
    assert facts.inner_text().startswith("No answer: ")
    expect(here.page.locator("#try-content")).to_have_value("Hello")

    slow = person.assistant("Slow", model="fake-slow")
    here.open(f"/admin/chats/turn/try/{slow}/")
    here.page.locator("#try-content").fill(f"Long. {mark(tokens=2000, itl=50)}")
    here.button("Ask").click()
    here.page.locator(".try-answer:not(:empty)").wait_for()
    here.button("Stop").click()
    here.sees("Stopped")

    here.context.clear_cookies()
    here.page.locator("#try-content").fill("Still here?")
    here.press("Enter")
    here.page.locator("#try-state.try-error").wait_for()
    expect(here.page.locator("#try-content")).to_have_value("Still here?")


def is_accessible(here: Visitor) -> None:
    """axe-core finds nothing in what is Amber's own of the page."""
    if AXE.exists():
        here.page.evaluate(AXE.read_text())
        found = here.page.evaluate(
            "(ours) => axe.run({ include: ours })", [[each] for each in OURS]
        )
        assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
