"""The list of chats: found, named, pinned, archived, exported, deleted."""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.kit.browser import expect

pytestmark = pytest.mark.e2e


def test_chats_are_listed_by_date_and_linked(visit, person):
    chat_id = person.import_chat("Of today", "A question", "An answer")
    here = visit().open()
    here.page.get_by_role("heading", name="Today").wait_for()
    here.link("Of today").click()
    assert here.chat_id == chat_id
    here.sees("An answer")
    assert here.page.title() == "Of today · Amber"
    assert here.link("Of today").get_attribute("aria-current") == "page"


def test_a_chat_that_is_older_than_the_list_keeps_its_name_and_the_list_grows(visit, person):
    oldest = person.import_chat("The oldest", "A question", "An answer")
    for number in range(55):
        person.import_chat(f"Newer {number}", "A", "B")
    here = visit()

    def wait(route):
        """The list comes after the chat."""
        here.page.wait_for_timeout(500)
        route.continue_()

    here.page.route(re.compile(r"/chats/\?limit=50"), wait)
    here.open_chat(oldest)
    here.link("Newer 54").wait_for()
    expect(here.page.locator(".chat-name")).to_have_text("The oldest")
    here.button("Assistant: Marie").wait_for()
    expect(here.link("Newer 2")).to_have_count(0)
    here.page.locator(".sidebar-scroll").evaluate("(box) => box.scrollTop = box.scrollHeight")
    here.link("Newer 2").wait_for()
    here.is_accessible()


def test_a_name_has_the_whole_line_until_its_menu_is_wanted(visit, person):
    person.import_chat(
        "A name that is longer than the line that it stands on, and goes on", "A", "B"
    )
    here = visit().open()
    line, name = (
        here.page.locator(".chat-link").first,
        here.page.locator(".chat-link a > span").first,
    )
    widths = []
    for place in (here.composer, line):
        place.hover()
        widths.append(name.bounding_box()["width"])
    assert widths[0] > widths[1] + 20
    assert widths[0] > line.bounding_box()["width"] - 24


def test_half_of_the_side_bar_of_a_laptop_is_for_chats(visit):
    here = visit().open()
    box = here.page.locator(".sidebar-scroll")
    box.wait_for()
    assert box.evaluate("(box) => box.clientHeight") > 400
    for language in ("en", "de"):
        here = visit(locale=language).open("/settings")
        tabs = here.page.locator(".parts-nav a")
        tabs.last.wait_for()
        assert len({each.bounding_box()["y"] for each in tabs.all()}) == 1, language


def test_search_finds_words_in_english_and_chinese(visit, person):
    person.import_chat("Rivers", "Where do rivers end?", "In a delta, mostly.")
    person.import_chat("地理", "长江流经哪些城市？", "重庆、武汉、南京和上海。")
    here = visit().open()
    search = here.page.get_by_role("searchbox", name="Search chats")
    search.fill("delta")
    here.page.locator(".hit").get_by_text("In a delta, mostly.").wait_for()
    expect(here.page.locator(".hit mark")).to_have_text("delta")
    here.is_accessible()
    search.fill("武汉")
    here.page.locator(".hit").get_by_text("重庆、武汉").wait_for()
    search.fill("nowhere-to-be-found")
    here.sees("No results.")
    search.press("Escape")
    here.link("Rivers").wait_for()


def test_a_hit_is_plain_text_around_the_words_that_were_found(visit, person):
    table = (
        "| **River** | Its end |\n|:--|---|\n| [Rhone](https://example.com) | ~~sea~~ `estuary` |"
    )
    filler = "- filler\n" * 200
    answer = f"# Ends\n\n{filler}\n{table}\n\n> *Done*, snake_case stays."
    person.import_chat("**Estuaries** of `France`", "Where?", answer)
    here = visit().open()
    here.page.get_by_role("searchbox", name="Search chats").fill("estuary")
    hit = here.page.locator(".hit")
    expect(hit.locator("mark")).to_have_text("estuary")
    said = " ".join(hit.locator(".hit-text").inner_text().split())
    assert said.endswith("River · Its end Rhone · sea estuary Done, snake_case stays.")
    assert said.startswith("…")
    expect(hit.locator(".hit-name")).to_have_text("Estuaries of France")


def test_a_hit_leads_to_its_message(visit, person):
    contents = [f"Exchange {number} of many" for number in range(240)]
    contents[20] = "The needle is here."
    person.import_chat("Haystack", *contents)
    here = visit().open()
    here.page.get_by_role("searchbox", name="Search chats").fill("needle")
    here.page.locator(".hit a").click()
    found = here.page.locator(".timeline").get_by_text("The needle is here.")
    found.wait_for()
    here.page.wait_for_function(
        "() => { const all = [...document.querySelectorAll('.timeline .bubble, .timeline .markdown')];"
        " const at = all.find((each) => each.textContent.includes('The needle'))?.getBoundingClientRect();"
        " return at && at.top > 0 && at.bottom < innerHeight; }"
    )


def test_rename_pin_archive_delete(visit, person):
    person.import_chat("Plain", "A", "B")
    here = visit().open()
    here.link("Plain").wait_for()
    here.menu_of_chat("Plain")
    here.is_accessible()
    here.select("Rename")
    here.is_accessible()
    here.dialog.get_by_label("Name").fill("Fancy")
    here.dialog.get_by_label("Name").press("Enter")
    here.link("Fancy").wait_for()
    here.menu_of_chat("Fancy")
    here.select("Pin")
    here.page.get_by_role("heading", name="Pinned").wait_for()
    here.menu_of_chat("Fancy")
    here.select("Unpin")
    here.page.get_by_role("heading", name="Pinned").wait_for(state="detached")
    here.menu_of_chat("Fancy")
    here.select("Archive")
    here.link("Fancy").wait_for(state="detached")
    here.button("Show archived chats").click()
    here.menu_of_chat("Fancy")
    here.select("Unarchive")
    here.button("Back to all chats").click()
    here.link("Fancy").click()
    here.menu_of_chat("Fancy")
    here.select("Delete")
    here.is_accessible()
    here.button("Cancel").click()
    here.menu_of_chat("Fancy")
    here.select("Delete")
    here.button("Delete").click()
    here.page.wait_for_url(re.compile(r"/$"))
    here.link("Fancy").wait_for(state="detached")


def test_an_export_can_be_imported(visit, person):
    person.import_chat("To go", "A question", "An answer")
    here = visit().open()
    here.link("To go").wait_for()
    here.menu_of_chat("To go")
    with here.page.expect_download() as download:
        here.select("Export")
    assert download.value.suggested_filename == "To go.json"
    exported = json.loads(Path(download.value.path()).read_text())
    assert [each["content"] for each in exported["messages"]] == ["A question", "An answer"]


def test_a_chat_that_is_not_there_says_so(visit):
    here = visit().open("/chats/01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00")
    here.page.get_by_role("heading", name="Chat not found").wait_for()
    here.is_accessible()
    here.open("/chats/x/y/z")
    here.page.get_by_role("heading", name="Page not found").wait_for()
