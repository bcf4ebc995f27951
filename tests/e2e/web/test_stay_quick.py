"""Long chats and long answers: only what is near is drawn, and what is drawn stays."""

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.kit.browser import expect
from tests.e2e.web.visitor import mark

if TYPE_CHECKING:
    from playwright.sync_api import Route

    from tests.e2e.web.visitor import Visitor

pytestmark = pytest.mark.e2e

BLOCKS = ".answer .markdown > .block"
MARK_BLOCKS = """(selector) => {
  const finished = [...document.querySelectorAll(selector)].slice(0, -1);
  for (const block of finished) block.firstChild.isOfBefore = true;
  return finished.length;
}"""
DRAWN_AGAIN = """([selector, count]) => [...document.querySelectorAll(selector)].slice(0, count)
  .filter((block) => !block.firstChild.isOfBefore).map((block) => block.textContent)"""


def test_a_chat_of_ten_thousand_messages(visit, person):
    chat_id = person.import_chat("Long", *(f"Message number {n}" for n in range(10_000)))
    here = visit()
    here.open_chat(chat_id)
    here.page.get_by_text("Message number 9999").wait_for()
    for _ in range(12):
        before = here.page.evaluate("() => document.querySelector('[data-entry]').dataset.entry")
        here.page.locator(".timeline").evaluate("(box) => box.scrollTop = 0")
        here.page.wait_for_function(
            "(before) => document.querySelector('[data-entry]')?.dataset.entry !== before",
            arg=before,
        )
    drawn = here.page.locator("[data-entry]").count()
    assert drawn < 300, "what is far away is not drawn"
    here.button("Jump to the latest message").click()
    here.page.get_by_text("Message number 9999").wait_for()
    here.is_accessible()


@pytest.mark.parametrize("place", [1_200, 300], ids=["further down", "at the beginning"])
def test_what_is_read_does_not_move_when_earlier_messages_come(visit, person, place):
    chat_id = person.import_chat("Still", *(f"Message number {n}" for n in range(400)))
    here = visit()
    here.open_chat(chat_id)
    here.page.get_by_text("Message number 399").wait_for()
    # What was read is there before earlier messages come.
    held: list[Route] = []
    here.page.route("**/messages/?*", lambda route: held.append(route))
    drawn = here.page.locator("[data-entry]").count()
    with here.page.expect_request("**/messages/?*"):
        here.page.locator(".timeline").evaluate("(box, place) => box.scrollTop = place", place)
    entry, top = at_rest(here, FIRST_SEEN)
    for route in held:
        route.continue_()
    here.page.unroute("**/messages/?*")
    here.page.wait_for_function(
        "(drawn) => document.querySelectorAll('[data-entry]').length > drawn", arg=drawn
    )
    assert at_rest(here, TOP_OF, entry) == pytest.approx(top, abs=3)


FIRST_SEEN = """() => { const box = document.querySelector('.timeline').getBoundingClientRect();
  const at = [...document.querySelectorAll('[data-entry]')].find((e) => e.getBoundingClientRect().top > box.top + 100);
  return [at.dataset.entry, at.getBoundingClientRect().top]; }"""
TOP_OF = "(entry) => document.querySelector(`[data-entry='${entry}']`).getBoundingClientRect().top"


def at_rest(here: "Visitor", place: str, *given: str) -> Any:
    """What the page says of this place once it has said the same for a while: a busy machine draws late."""
    before = None
    for _ in range(40):
        now = here.page.evaluate(place, *given)
        if now == before:
            return now
        before = now
        here.page.wait_for_timeout(500)
    raise AssertionError(f"still moving: {before}")


def test_an_answer_of_64_kb_draws_each_part_once_and_lets_the_person_type(
    visit, person, record_property
):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Much. {mark(rich=64, itl=2)}")
    wait_for_blocks(here, 40)
    here.page.evaluate("() => { window.longFrames = []; }")
    finished = here.page.evaluate(MARK_BLOCKS, BLOCKS)
    here.composer.press_sequentially("typing while it streams ", delay=60)
    here.page.set_default_timeout(60_000)
    here.wait_for_end()
    assert here.page.locator(BLOCKS).count() > finished + 1, "nothing came after those marked"
    assert here.page.evaluate(DRAWN_AGAIN, [BLOCKS, finished]) == []
    expect(here.composer).to_have_value("typing while it streams ")
    frames = here.page.evaluate("() => window.longFrames")
    record_property("longest_frame_ms", max(frames, default=50))


def wait_for_blocks(here: "Visitor", count: int) -> None:
    here.page.wait_for_function(
        "([selector, count]) => document.querySelectorAll(selector).length >= count",
        arg=[BLOCKS, count],
    )


def test_something_is_shown_while_the_page_itself_is_on_its_way(visit):
    here = visit()
    here.page.route("**/app/main*", lambda route: None)  # never answered
    here.page.goto(here.base, wait_until="commit")
    expect(here.page.locator("#app .dots")).to_be_visible()
