"""Memories, usage, settings: what a person keeps in order for themselves and their organization."""

import json
import re

import pytest

from amber.processes import wait_until
from tests.e2e.kit.browser import expect
from tests.e2e.web.visitor import mark

pytestmark = pytest.mark.e2e

SMALL = {"width": 390, "height": 800}


# -- Memories --------------------------------------------------------------------------------------


def test_memories_are_added_found_corrected_and_forgotten(visit, person, organization):
    here = visit().open("/memories")
    here.sees("Nothing is remembered about you yet.")
    here.is_accessible()
    here.button("Add a memory").click()
    here.dialog.get_by_label("What to remember").fill("Paula lives in Gdańsk.")
    here.is_accessible()
    here.button("Save").click()
    here.sees("Paula lives in Gdańsk.")
    person.post("memories/", {"content": "Paula prefers metric units."})
    here.page.get_by_label("Search memories").fill("Where does Paula live?")
    here.press("Enter")
    here.button("Show all").wait_for()
    here.is_accessible()
    here.button("Show all").click()
    here.button("Actions for the memory: Paula lives in Gdańsk.").click()
    here.select("Edit")
    here.dialog.get_by_label("What to remember").fill("Paula lives in Sopot.")
    here.button("Save").click()
    here.sees("Paula lives in Sopot.")
    here.button("Source: Paula lives in Sopot.").click()
    here.dialog.get_by_text("No source: you wrote it yourself").wait_for()
    here.press("Escape")
    here.button("Actions for the memory: Paula lives in Sopot.").click()
    here.select("Forget")
    here.dialog.get_by_role("button", name="Forget").click()
    here.sees("Forgotten.")
    kept = {each["content"] for each in person.get("memories/")["results"]}
    assert "Paula lives in Sopot." not in kept


@pytest.mark.parametrize(
    ("language", "save", "long", "taken"),
    [
        ("en", "Save", "At most 2,000 characters are possible.", "This is already taken."),
        ("de", "Speichern", "Höchstens 2.000 Zeichen sind möglich.", "Das gibt es schon."),
        ("zh", "保存", "最多 2,000 个字符。", "已存在，请换一个。"),
    ],
)
def test_what_is_wrong_with_a_field_is_said_in_the_readers_language(
    visit, person, organization, language, save, long, taken
):
    for fact in ("She likes amber.", f"She reads {language}."):
        person.post("memories/", {"content": fact})
    here = visit(locale=language).open("/memories")
    item = here.page.locator("li", has_text=f"She reads {language}.")
    item.locator("[aria-haspopup=menu]").click()
    here.page.get_by_role("menuitem").first.click()
    box = here.dialog.get_by_role("textbox")
    for text, complaint in (("x" * 2_001, long), ("She likes amber.", taken)):
        box.fill(text)
        here.dialog.get_by_role("button", name=save).click()
        expect(here.dialog.locator(".error")).to_have_text(complaint)
    assert box.get_attribute("aria-invalid") == "true"


def test_what_can_be_done_with_a_memory_stands_beside_it_on_a_phone(visit, person, organization):
    person.post("memories/", {"content": "Paula sails."})
    here = visit(locale="de", viewport={"width": 390, "height": 844}).open("/memories")
    row = here.page.locator(".list-row", has_text="Paula sails.")
    places = [row.locator("button").nth(n).bounding_box() for n in (0, 1)]
    assert abs(places[0]["y"] - places[1]["y"]) < places[0]["height"]


def test_an_address_that_leads_nowhere_is_told_on_a_page(visit):
    here = visit().open("/nowhere")
    here.page.get_by_role("heading", name="Page not found").wait_for()
    here.link("Start a new chat").click()
    here.composer.wait_for()


def test_what_is_forgotten_leaves_a_list_that_was_loaded_on(visit, person, organization):
    for number in range(52):
        person.post("memories/", {"content": f"Shelf {number} holds resin {number}."})
    here = visit().open("/memories")
    here.button("More").click()
    here.sees("Shelf 0 holds resin 0.")
    here.button("Actions for the memory: Shelf 1 holds resin 1.").click()
    here.select("Forget")
    here.dialog.get_by_role("button", name="Forget").click()
    here.page.get_by_text("Shelf 1 holds resin 1.").wait_for(state="detached")
    here.sees("Shelf 0 holds resin 0.")
    here.button("Actions for all memories").click()
    here.select("Forget everything")
    here.dialog.get_by_role("button", name="Forget everything").click()
    here.sees("Nothing is remembered about you yet.")


# -- Usage -----------------------------------------------------------------------------------------


def test_usage_is_a_chart_with_its_figures(visit, person, organization):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Hi {mark(tokens=9)}")
    here.wait_for_end()
    here.open("/usage")
    chart = here.page.get_by_role("img", name=re.compile("Tokens by day"))
    chart.wait_for()
    assert chart.locator("rect").count() >= 1
    assert here.page.locator("table tbody tr").count() >= 1
    here.sees("Cost (USD)")
    here.page.locator(".totals").get_by_text("0\u00a0USD").wait_for()
    here.is_accessible()
    for by in ("assistant", "key", "kind", "user"):
        here.page.get_by_label("Group by").select_option(by)
        here.page.locator("table tbody tr").first.wait_for()
    with here.page.expect_download() as begun:
        here.page.get_by_role("link", name="Download as CSV").click()
    header, first = begun.value.path().read_text().splitlines()[:2]
    assert header.startswith("day,user_id,user_name,calls,")
    assert person.email in first
    here.page.get_by_label("Show").select_option("cost")
    here.page.get_by_role("img", name=re.compile("Cost by day")).wait_for()
    here.page.get_by_label("Group by").select_option("assistant")
    here.page.locator("table").get_by_text("Marie").first.wait_for()
    day = here.page.locator(".chart text").last
    height_px = day.bounding_box()["height"]
    here.page.set_viewport_size(SMALL)
    here.is_accessible()
    assert day.bounding_box()["height"] == pytest.approx(height_px, rel=0.1)


# -- Settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    ["", "keys", "organization", "members", "groups", "budgets", "webhooks", "feedback", "data"],
)
@pytest.mark.parametrize("size", [None, SMALL], ids=["wide", "narrow"])
def test_each_part_of_the_settings_is_accessible(visit, organization, part, size):
    here = visit(**({"viewport": size} if size else {})).open(f"/settings/{part}".rstrip("/"))
    here.page.locator("section h2").first.wait_for()
    here.page.wait_for_function("() => !document.querySelector('.waiting')")
    here.is_accessible()


def test_a_key_is_shown_once_and_revoked(visit, person, organization):
    here = visit().open("/settings/keys")
    here.button("New API key").click()
    here.dialog.get_by_label("Name").fill("Reports")
    here.is_accessible()
    here.button("Create").click()
    secret = here.page.locator("[data-secret]").inner_text()
    assert secret.startswith("amb_live_")
    here.is_accessible()
    here.page.evaluate("() => delete Navigator.prototype.clipboard")  # as without https
    here.button("Copy").click()
    here.sees("Copied")
    here.button("I have saved it").click()
    here.sees("Reports")
    assert secret not in here.page.content()
    here.button("Revoke: Reports").click()
    here.dialog.get_by_role("button", name="Revoke").click()
    here.sees("revoked")
    assert all(each["revoked_at"] for each in person.get("api-keys/")["results"])


def test_somebody_is_invited_by_a_link_and_the_invitation_withdrawn(visit, person, organization):
    here = visit().open("/settings/members")
    here.page.get_by_label("Email").fill("newcomer@example.com")
    here.button("Invite").click()
    link = here.page.locator("[data-secret]").inner_text()
    assert re.fullmatch(re.escape(here.base) + r"/invitation/\S+", link)
    here.button("I have saved it").click()
    here.button("Withdraw: newcomer@example.com").click()
    here.button("Withdraw: newcomer@example.com").wait_for(state="detached")
    assert not person.get(f"organizations/{organization}/invitations/")["results"]


def test_one_of_many_members_is_found(visit, person, organization):
    (own,) = person.get(f"organizations/{organization}/members/")["results"]
    named = [{"id": str(n), "name": f"Member {n}", "email": f"m{n}@a.example"} for n in range(120)]
    page = {"next": None, "results": [own | each for each in named]}
    here = visit()
    here.page.route("**/members/?*", lambda route: route.fulfill(json=page))
    here.open("/settings/members")
    roles = here.page.get_by_label("Role of")
    expect(roles).to_have_count(100)
    here.button("More").click()
    expect(roles).to_have_count(120)
    here.page.get_by_label("Search members").fill("MEMBER 77")
    expect(roles).to_have_count(1)
    here.is_accessible()


def test_a_budget_is_set_and_taken_away(visit, person, organization):
    here = visit().open("/settings/budgets")
    here.page.get_by_label("Unit", exact=True).select_option("tokens")
    here.page.get_by_label("Limit").fill("100000")
    here.button("Create").click()
    here.sees("token limit: 100,000 per month")
    here.is_accessible()
    here.button("Actions for The organization").click()
    here.select("Edit")
    here.dialog.get_by_label("Limit").fill("250000")
    here.is_accessible()
    here.dialog.get_by_role("button", name="Save").click()
    here.sees("token limit: 250,000 per month")
    here.button("Actions for The organization").click()
    here.select("Delete")
    here.dialog.get_by_role("button", name="Delete").hover()
    here.is_accessible()
    here.dialog.get_by_role("button", name="Delete").click()
    here.sees("No budgets yet.")
    assert not person.get("budgets/")["results"]


def test_a_webhook_is_made_switched_off_and_deleted(visit, person, organization):
    here = visit().open("/settings/webhooks")
    here.page.get_by_label("Address").fill("https://example.com/hook")
    here.button("Create").click()
    assert here.page.locator("[data-secret]").inner_text().startswith("whsec_")
    here.button("I have saved it").click()
    here.button("Log: https://example.com/hook").click()
    here.dialog.get_by_text("Nothing was sent yet.").wait_for()
    here.is_accessible()
    here.press("Escape")
    here.button("Actions for https://example.com/hook").click()
    here.select("Disable")
    here.page.get_by_text("off ·").wait_for()
    here.button("Actions for https://example.com/hook").click()
    here.select("Delete")
    here.dialog.get_by_role("button", name="Delete").press("Enter")
    here.sees("No webhooks yet.")
    here.has_focus("content")


def test_the_profile_and_the_organization_are_changed(visit, person, organization):
    here = visit().open("/settings")
    here.page.get_by_label("Name", exact=True).fill("Paula B.")
    here.button("Save").click()
    here.sees("Saved.")
    assert person.get("me/")["name"] == "Paula B."
    here.open("/settings/organization")
    here.page.get_by_label("Delete chats after this many days").fill("90")
    here.page.get_by_label("Include texts in traces").check()
    here.button("Save").click()
    here.sees("Saved.")
    stored = person.get(f"organizations/{organization}/")
    assert (stored["retention_days"], stored["trace_content"]) == (90, True)


def test_feedback_is_read_and_filtered(visit, person, organization):
    chat = person.import_chat("Judged", "Hi", "Hello")
    answer = person.get(f"chats/{chat}/messages/")["results"][-1]
    given = {"value": "down", "reason": "wrong", "comment": "It is 54 °C."}
    person.put(f"messages/{answer['id']}/feedback/", given)
    here = visit().open("/settings/feedback")
    here.sees("It is 54 °C.")
    here.is_accessible()
    here.page.get_by_label("Show").select_option("up")
    here.sees("No feedback yet.")


def test_ones_data_is_exported_and_erased(visit, person, organization):
    chat = person.import_chat("Taken along", "Hi", "Hello")
    here = visit().open("/settings/data")
    with here.page.expect_download() as download:
        here.button("Export my data").click()
    exported = json.loads(download.value.path().read_text())
    assert "Taken along" in [each["chat"]["name"] for each in exported["chats"]]
    here.button("Erase my data").click()
    here.dialog.get_by_label(re.compile("To confirm")).fill("somebody@else.example")
    here.dialog.get_by_role("button", name="Erase my data").click()
    here.dialog.locator(".error").wait_for()
    here.is_accessible()
    here.dialog.get_by_label(re.compile("To confirm")).fill(person.email)
    here.dialog.get_by_role("button", name="Erase my data").click()
    here.page.locator("main [role=status]").wait_for()
    status = lambda: person.http.get(f"/api/v1/chats/{chat}/").status_code  # noqa: E731
    assert wait_until(lambda: status() == 404, timeout_seconds=20)


def test_a_chat_that_is_not_here_may_be_in_another_organization(visit, organization):
    here = visit().open(f"/chats/{organization}")
    here.sees("Or it is in another of your organizations")
    here.is_accessible()
