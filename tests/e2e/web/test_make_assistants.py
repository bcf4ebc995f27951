"""Assistants, by what a person does with them: find, make, try, give tools, share, delete."""

import pytest

from tests.e2e.kit.browser import expect
from tests.e2e.web.visitor import mark, say

pytestmark = pytest.mark.e2e

SMALL = {"width": 390, "height": 800}


def test_somebody_makes_an_assistant_and_tries_it(visit, person):
    here = visit().open("/assistants/new")
    here.sees("Save the assistant first")
    here.is_accessible()
    here.page.get_by_label("Name", exact=True).fill("Pump doctor")
    here.page.get_by_label("Prompt", exact=True).fill("You help people with pumps.")
    here.page.get_by_label("Model", exact=True).select_option("fake-model")
    here.button("Save").click()
    here.page.wait_for_url("**/assistants/0*")
    made = next(
        each for each in person.get("assistants/")["results"] if each["name"] == "Pump doctor"
    )
    assert (made["prompt"], made["model"]) == ("You help people with pumps.", "fake-model")
    here.page.get_by_label("Your question").fill(f"How? {say('Open the valve.')}")
    here.press("Enter")
    here.page.locator(".try-log").get_by_text("Open the valve.").wait_for()
    here.button("Ask").wait_for()
    here.is_accessible()


def test_what_was_changed_is_saved_before_it_is_tried(visit, person):
    made = person.assistant("Changing")
    here = visit().open(f"/assistants/{made}")
    here.page.get_by_label("Prompt", exact=True).fill("Be short.")
    here.sees("Unsaved changes")
    here.page.get_by_label("Your question").fill(f"Hi {mark(tokens=3)}")
    here.button("Ask").click()
    here.page.locator(".try-log .markdown").wait_for()
    assert person.get(f"assistants/{made}/")["prompt"] == "Be short."


def test_a_trial_that_fails_says_so(visit, person):
    made = person.assistant("Failing", model="fake-model")
    here = visit().open(f"/assistants/{made}")
    here.page.get_by_label("Your question").fill(f"Hi {mark(status=400)}")
    here.button("Ask").click()
    here.page.locator(".try [role=alert]").wait_for()
    here.is_accessible()


def test_the_gallery_finds_and_leads_to_a_chat(visit, person):
    person.assistant("Letter writer", description="Writes friendly letters.")
    here = visit(viewport=SMALL).open("/assistants")
    here.page.get_by_label("Search by name").fill("letter")
    here.page.wait_for_function("() => document.querySelectorAll('.card').length === 1")
    here.is_accessible()
    here.button("Chat: Letter writer").click()
    here.composer.wait_for()
    here.ask(f"Hi {mark(tokens=3)}")
    here.wait_for_end()
    chat = person.get(f"chats/{here.chat_id}/")
    assert chat["assistant_id"] == person.assistants["Letter writer"]


def test_a_public_assistant_shows_the_line_that_embeds_it(visit, person):
    made = person.assistant("Public one")
    here = visit().open(f"/assistants/{made}")
    here.page.get_by_label("Open to guests").check()
    origins = ["https://a.example", "https://b.example"]
    here.page.get_by_label("Allowed websites").press_sequentially("\n".join(origins))
    here.button("Save").click()
    here.page.get_by_text(f'data-assistant="{made}"').wait_for()
    stored = person.get(f"assistants/{made}/")
    assert (stored["public"], stored["public_origins"]) == (True, origins)
    here.is_accessible()


def test_scenes_are_added_changed_and_taken_away(visit, person):
    made = person.assistant("With scenes")
    here = visit().open(f"/assistants/{made}")
    here.button("Add scenes").click()
    here.select("Custom scene")
    here.dialog.get_by_label("Name").fill("Complaint")
    here.dialog.get_by_label("Prompt").fill("Apologise first.")
    here.dialog.get_by_label("Example questions").fill("It is broken\nIt came late")
    here.is_accessible()
    here.dialog.get_by_role("button", name="Save").click()
    here.button("Edit the scene Complaint").wait_for()
    (scene,) = person.get(f"assistants/{made}/scene-prompts/")["results"]
    assert scene["examples"] == ["It is broken", "It came late"]
    here.button("Delete the scene Complaint").click()
    here.dialog.get_by_role("button", name="Delete").click()
    here.button("Edit the scene Complaint").wait_for(state="detached")
    assert not person.get(f"assistants/{made}/scene-prompts/")["results"]


def test_a_description_is_plain_text_in_the_gallery(visit, person):
    person.assistant(
        "Plain Pia", description="Knows **everything** about [resin](https://a.example)"
    )
    here = visit().open("/assistants")
    here.sees("Knows everything about resin")


def test_a_refused_field_is_marked(visit, person):
    made = person.assistant("Too warm")
    here = visit().open(f"/assistants/{made}")
    here.page.get_by_label("Allowed websites").wait_for(state="detached")
    here.page.get_by_label("Name", exact=True).fill(" ")
    here.button("Save").click()
    here.page.locator("[aria-invalid=true]").first.wait_for()
    here.is_accessible()
    here.page.get_by_label("Name", exact=True).fill("Too warm")
    here.page.get_by_label("Suggested questions").fill("\n".join("1234567"))
    here.page.get_by_label("Name", exact=True).focus()
    here.button("Save").click()
    here.sees("At most 6 are possible.")
    expect(here.page.get_by_label("Suggested questions")).to_be_focused()
    expect(here.page.locator(".failure")).to_have_count(0)


def test_an_assistant_is_deleted_and_gone_from_the_gallery(visit, person):
    made = person.post("assistants/", {"name": "Short-lived"})["id"]
    here = visit().open(f"/assistants/{made}")
    here.button("Actions for the assistant Short-lived").click()
    here.select("Delete")
    here.dialog.get_by_role("button", name="Delete").click()
    here.page.wait_for_url("**/assistants")
    here.page.locator(".card").first.wait_for()
    expect(here.page.get_by_text("Short-lived", exact=True)).to_have_count(0)


def test_hostile_names_are_only_text(visit, person):
    hostile = "<img src=x onerror=alert(1)>"
    made = person.assistant(hostile, description=hostile, prompt=hostile)
    here = visit()
    for path in ("/assistants", f"/assistants/{made}"):
        here.open(path).sees(hostile)
        expect(here.page.locator("main img")).to_have_count(0)


def test_the_list_of_assistants_to_mention_stays_in_the_window(visit, person):
    for number in range(8):
        person.assistant(f"Mentioned {number}")
    here = visit(viewport={"width": 1000, "height": 500}).open()
    here.composer.press_sequentially("@mentioned")
    box = here.page.get_by_role("listbox")
    box.wait_for()
    assert box.bounding_box()["y"] >= 0
    here.press("ArrowUp")
    chosen = here.page.get_by_role("option", selected=True)
    expect(chosen).to_have_id("mention-7")
    expect(chosen).to_be_in_viewport()
