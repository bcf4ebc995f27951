"""Whom to ask: a menu of a few assistants, a list to filter of many."""

import pytest

from tests.e2e.kit.browser import expect
from tests.e2e.kit.sessions import new_account, signed_in
from tests.e2e.web.visitor import Person

pytestmark = pytest.mark.e2e

MANY = [f"Assistant {number:02d}" for number in range(40)] + ["Gärtner für Rosen", "Gärtnerin"]


@pytest.fixture(scope="module")
def crowded(running_platform, browser):
    """Somebody with many assistants."""
    running_platform.restore()
    email = new_account(running_platform, "gina")
    with signed_in(running_platform, email) as http:
        gina = Person(running_platform, email, http)
        for name in MANY:
            gina.assistant(name)
        yield gina


def test_a_few_are_a_menu(visit):
    here = visit().open()
    here.button("Assistant: Marie").click()
    expect(here.page.get_by_role("menuitemradio", name="Marie")).to_have_count(1)
    expect(here.page.get_by_role("combobox", name="Filter assistants")).to_have_count(0)


def test_many_are_filtered_by_keyboard_alone(visit, crowded):
    here = visit(who=crowded).open()
    here.button("Assistant: Assistant 00").focus()
    here.press("Enter")
    box = here.page.get_by_role("combobox", name="Filter assistants")
    expect(box).to_be_focused()
    options = here.page.get_by_role("option")
    expect(options).to_have_count(len(MANY))
    expect(options.first).to_have_attribute("aria-selected", "true")
    here.is_accessible()
    box.press_sequentially("gartner")
    expect(options).to_have_text(["Gärtner für Rosen", "Gärtnerin"])
    here.hears("2 results")
    here.press("ArrowDown")
    active = box.get_attribute("aria-activedescendant")
    assert here.page.locator(f"[id='{active}']").inner_text() == "Gärtnerin"
    here.press("ArrowDown")
    here.press("ArrowUp")
    here.press("Enter")
    here.button("Assistant: Gärtnerin").wait_for()
    assert here.focus().endswith("Gärtnerin")
    expect(box).to_have_count(0)


def test_nothing_is_found_and_escape_changes_nothing(visit, crowded):
    here = visit(who=crowded, viewport={"width": 390, "height": 844}).open()
    chosen = here.button("Assistant: Assistant 00")
    chosen.click()
    here.page.get_by_role("combobox", name="Filter assistants").fill("zebra")
    here.sees("No results.")
    here.hears("0 results")
    here.is_accessible()
    here.press("Enter")
    here.press("ArrowDown")
    here.press("Escape")
    expect(chosen).to_be_focused()
    chosen.click()
    here.page.get_by_role("option", name="Assistant 07").click()
    here.button("Assistant: Assistant 07").wait_for()


def test_the_way_back_leads_to_where_the_list_was_left(visit, person):
    for number in range(12):
        person.assistant(f"Listed {number}")
    here = visit(viewport={"width": 390, "height": 640}).open("/assistants")
    here.page.locator(".card").nth(11).scroll_into_view_if_needed()
    top = here.page.locator("main").evaluate("(main) => main.scrollTop")
    assert top > 500
    here.page.locator(".card").nth(11).get_by_role("link", name="Edit").click()
    here.page.get_by_label("Prompt", exact=True).wait_for()
    here.page.go_back()
    here.page.wait_for_function(
        "(top) => document.querySelector('main').scrollTop === top", arg=top
    )
