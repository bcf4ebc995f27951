"""A question that is refused is neither lost nor leaves anything behind."""

from collections.abc import Iterator

import pytest

from amber.processes import wait_until
from tests.e2e.kit.browser import expect
from tests.e2e.web.test_attach_files import attach, file, picture
from tests.e2e.web.visitor import Person, mark

pytestmark = pytest.mark.e2e


@pytest.fixture
def budget(person: Person, organization: str) -> Iterator[str]:
    """One that allows nothing."""
    fields = {"scope": "organization", "period": "day", "unit": "tokens", "limit": "0"}
    made = person.post("budgets/", fields)
    yield f"budgets/{made['id']}/"
    person.http.delete(
        f"/api/v1/budgets/{made['id']}/", headers={"X-CSRFToken": person.http.cookies["csrftoken"]}
    )


def test_a_first_question_that_is_refused_stays_written_and_leaves_no_chat(visit, person, budget):
    here = visit().open()
    attach(here, file("sun.png", "image/png", picture()))
    here.page.locator(".attachments img").wait_for()
    question = f"What is this? {mark(tokens=5)}"
    here.ask(question)
    here.page.get_by_role("alert").get_by_text("budget").wait_for()
    here.wait_for_draft(question)
    expect(here.page.locator(".attachments li")).to_have_text("sun.png")
    here.is_accessible()
    assert here.page.url == f"{here.base}/"
    assert person.get("chats/")["results"] == []
    expect(here.chats).to_have_count(0)
    person.patch(budget, {"limit": "1000000"})
    here.composer.press("Enter")
    here.wait_for_end()
    here.shows_what_is_stored()
    assert person.stored(here.chat_id, "human") == [question]
    expect(here.page.locator(".question .picture img")).to_have_count(1)
    expect(here.chats).to_have_count(1)


def test_a_first_question_is_still_written_after_a_reload_and_is_asked_once(visit, person):
    """The server had taken it before the page was left, which nobody there knows."""
    before = {chat["id"] for chat in person.get("chats/")["results"]}
    here = visit().open()
    here.button("Assistant: Marie").wait_for()
    attach(here, file("sun.png", "image/png", picture()))
    here.page.locator(".attachments img").wait_for()
    here.page.route("**/chats/", lambda route: route.fetch())  # whose answer never comes
    question = f"On its way {mark(tokens=5)}"
    with here.page.expect_request(lambda request: request.method == "POST"):
        here.ask(question)
    wait_until(lambda: len(person.get("chats/")["results"]) > len(before), timeout_seconds=30)
    here.page.reload()
    here.page.unroute("**/chats/")  # not earlier: the request would go on
    here.wait_for_draft(question)
    expect(here.page.locator(".attachments li")).to_have_text("sun.png")
    here.composer.press("Enter")
    here.wait_for_end()
    assert {chat["id"] for chat in person.get("chats/")["results"]} == before | {here.chat_id}
    assert person.stored(here.chat_id, "human") == [question]


def test_a_later_question_that_is_refused_is_there_after_a_reload(visit, person, budget):
    here = visit()
    here.open_chat(person.new_chat())
    attach(here, file("notes.txt", "text/plain", b"Hello"))
    here.button("Remove notes.txt").wait_for()
    here.page.locator(".attachments progress").wait_for(state="detached")
    here.ask("What is this?")
    refusal = here.page.locator(".unsent .failure")
    refusal.wait_for()
    here.page.reload()
    refusal.wait_for()
    expect(here.page.locator(".unsent .bubble")).to_have_text("What is this?")
    assert person.stored(here.chat_id, "file") == []
    here.composer.fill("Written meanwhile")
    here.button("Edit").click()
    here.wait_for_draft("What is this?\n\nWritten meanwhile")
    expect(here.page.locator(".attachments li")).to_have_text("notes.txt")
    person.patch(budget, {"limit": "1000000"})
    here.composer.press("Enter")
    here.wait_for_end()
    assert person.stored(here.chat_id, "human") == ["What is this?\n\nWritten meanwhile"]
    assert len(person.stored(here.chat_id, "file")) == 1
