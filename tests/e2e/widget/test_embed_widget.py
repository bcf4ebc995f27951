"""The widget in a real browser, on a stranger's page: it asks, streams, survives reloads and lost
connections; answers cannot do anything. For keyboards and screen readers: test_reach_widget.py.
"""

import os
from pathlib import Path

import pytest

from tests.e2e.kit.browser import expect, why_there_is_none
from tests.e2e.widget.visitor import WELCOME, assistant, visit
from tests.fakes.answers import answer_text

__all__ = ["assistant", "visit"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(bool(why_there_is_none()), reason=why_there_is_none() or "there is one"),
]

ROOT = Path(__file__).resolve().parents[3]
SCREENSHOT = os.environ.get("WIDGET_SCREENSHOT", "")
SLOW = "Tell me. [[fake tokens=60 itl=40]]"
"""2.4 seconds of text."""


# -- Asking ----------------------------------------------------------------------------------------


def test_asks_and_shows_the_answer_as_it_comes(visit):
    here = visit()
    here.wait_for_text("Ask me about resin.")
    here.ask(SLOW)
    here.wait_for_text("the river keeps")
    assert here.button("Stop").is_visible(), "before the end"
    here.wait_for_end()
    assert here.answer.inner_text().strip().endswith(answer_text(60).strip())
    assert here.page.locator(".you").inner_text().endswith(SLOW)
    assert not here.said


def test_what_the_model_thinks_is_folded_until_somebody_opens_it(visit):
    here = visit("fake-deepseek")
    here.ask("Think. [[fake tokens=60 itl=40]]")
    folded = here.page.locator("details.thoughts")
    folded.wait_for()
    thought = folded.get_by_text("I thought of")  # what a screen reader is told says so, too
    expect(thought).not_to_be_visible()
    here.page.get_by_text("Reasoning", exact=True).click(delay=300)  # as long as people press
    here.wait_for_text("the river keeps")
    expect(thought, "over the redraws of the answer that comes").to_be_visible()
    here.wait_for_end()
    assert here.answer.inner_text().strip().endswith(answer_text(60).strip())
    here.page.reload()
    here.page.get_by_text("Reasoning", exact=True).wait_for()
    expect(thought).not_to_be_visible()
    assert not here.said


def test_a_reload_in_the_middle_of_an_answer_loses_nothing(visit):
    here = visit()
    here.ask(SLOW)
    here.wait_for_text("the river keeps")
    before = here.answer.inner_text()
    here.page.reload()
    here.wait_for_text("the river keeps")
    assert here.button("Stop").is_visible(), "it goes on, and the panel is open as it was"
    here.wait_for_end()
    whole = here.answer.inner_text()
    assert len(before) < len(whole)
    assert whole.strip().endswith(answer_text(60).strip())
    here.page.reload()
    here.wait_for_text("once the river")
    expect(here.page.locator(".you")).to_have_count(1)
    expect(here.answer).to_have_text(whole)


def test_a_lost_connection_is_taken_up_again(visit, platform):
    here = visit()
    here.ask("Tell me. [[fake tokens=100 itl=60]]")
    here.wait_for_text("the river keeps")
    platform.web.kill()
    platform.restore()
    here.wait_for_end()
    assert here.answer.inner_text().strip().endswith(answer_text(100).strip())


def test_the_next_question_is_of_the_same_chat_and_a_new_start_of_another(visit):
    here = visit()
    for _ in range(2):
        here.ask("Hi [[fake tokens=6]]")
        here.wait_for_end()
    first = here.kept()["chat"]
    here.button("New chat").click()
    here.page.locator(".you").first.wait_for(state="detached")
    here.ask("Hi [[fake tokens=6]]")
    here.wait_for_end()
    assert here.kept()["chat"] not in (first, None)
    (guests,) = here.platform.query(
        "SELECT count(DISTINCT guest_id), count(*) FROM chats_chat WHERE id = ANY(%s)",
        [first, here.kept()["chat"]],
    )
    assert guests == (1, 2)


def test_stops(visit):
    here = visit()
    here.ask("Tell me. [[fake tokens=500 itl=60]]")
    here.wait_for_text("the river keeps")
    here.button("Stop").click()
    here.wait_for_text("Stopped.")
    here.wait_for_end()


def test_says_what_went_wrong_and_tries_again(visit):
    here = visit("fake-400-once")
    here.ask("Hi [[fake tokens=6]]")
    alert = here.page.get_by_role("alert")
    alert.wait_for()
    assert len(alert.inner_text()) > 20
    here.button("Try again").click()
    here.wait_for_text("the river keeps")
    here.wait_for_end()
    expect(here.page.locator(".you"), "the question is not said twice").to_have_count(1)
    expect(alert).not_to_be_visible()


def test_without_a_network_the_question_is_not_lost(visit):
    here = visit()
    here.page.context.set_offline(True)
    here.ask("Hi [[fake tokens=6]]")
    here.wait_for_text("Could not connect")
    here.page.context.set_offline(False)
    here.button("Try again").click()
    here.wait_for_text("the river keeps")


def test_a_guest_who_was_sent_away_begins_anew(visit, ann):
    here = visit()
    here.ask("Hi [[fake tokens=6]]")
    here.wait_for_end()
    before = here.kept()
    dismissed = ann.post(f"assistants/{ann.assistant('fake-model')}/dismiss-guests/")
    assert dismissed.status == 204
    here.ask("Again [[fake tokens=6]]")
    here.page.locator(".said:not(.you)").nth(2).wait_for()
    here.wait_for_end()
    assert here.kept()["token"] != before["token"]
    expect(here.page.get_by_role("alert")).to_have_count(0)


def test_an_assistant_that_is_not_public_shows_no_button(visit, ann):
    here = visit()
    address = here.page.url
    ann.request("PATCH", f"assistants/{ann.assistant('fake-model')}/", {"public": False})
    with here.page.expect_console_message(lambda m: "no assistant" in m.text):
        here.page.goto(address)
    expect(here.page.locator("#amber-widget")).to_have_count(0)


# -- More than one question ------------------------------------------------------------------------


def test_greets_suggests_and_asks_by_one_click(visit):
    here = visit(fields=WELCOME)
    here.wait_for_text("Show me your stones.")
    suggested = here.page.get_by_role("group", name="Suggested questions").get_by_role("button")
    expect(suggested).to_have_text(WELCOME["suggested_questions"])
    suggested.first.click()
    here.wait_for_text("the river keeps")
    here.wait_for_end()
    expect(here.page.locator(".you")).to_contain_text("What is amber?")
    expect(suggested, "they are for an empty chat").to_have_count(0)
    here.page.reload()
    here.page.locator(".you").wait_for()
    expect(suggested).to_have_count(0)


def test_takes_files_along_with_the_next_question(visit):
    here = visit(fields=WELCOME)
    stones = {"name": "stones.txt", "mimeType": "text/plain", "buffer": b"one, two"}
    other = {"name": "other.txt", "mimeType": "text/plain", "buffer": b"none"}
    with here.page.expect_file_chooser() as chooser:
        here.button("Attach a file").click()
    chooser.value.set_files([stones, other])
    here.button("Remove other.txt").click()
    here.button("Remove stones.txt").wait_for()
    here.ask("How many? [[fake tokens=6]]")
    here.wait_for_end()
    here.page.reload()
    here.page.locator(".you").wait_for()
    order = here.page.locator(".log .again, .log .you").all_inner_texts()
    assert [text.splitlines()[-1] for text in order] == [
        "stones.txt",
        "How many? [[fake tokens=6]]",
    ]
    with here.page.expect_download() as download:
        here.button("stones.txt").click()
    assert Path(download.value.path()).read_bytes() == b"one, two"
    assert not here.said


def test_a_file_is_sent_without_words(visit):
    here = visit(fields=WELCOME)
    with here.page.expect_file_chooser() as chooser:
        here.button("Attach a file").click()
    chooser.value.set_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"one"})
    here.button("Remove a.txt").wait_for()
    here.box.press("Enter")
    here.wait_for_end()
    expect(here.page.locator(".you")).to_have_count(0)
    here.button("a.txt").wait_for()
    assert not here.said


def test_a_file_that_is_refused_is_told_and_the_question_kept(visit, ann):
    here = visit(fields=WELCOME)
    assistant_id = ann.assistant("fake-model")
    ann.request("PATCH", f"assistants/{assistant_id}/", {"guest_files": False})
    here.box.fill("How many?")
    with here.page.expect_file_chooser() as chooser:
        here.button("Attach a file").click()
    chooser.value.set_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"one"})
    expect(here.page.get_by_role("alert")).to_contain_text("does not accept files")
    expect(here.box).to_have_value("How many?")
    expect(here.page.locator(".file")).to_have_count(0)


def test_goes_back_to_an_earlier_chat_whose_answer_went_on(visit):
    here = visit()
    here.ask("First [[fake tokens=60 itl=40]]")
    here.wait_for_text("the river keeps")
    here.button("New chat").click()
    here.page.locator(".you").first.wait_for(state="detached")
    here.ask("Second [[fake tokens=6]]")
    here.wait_for_end()
    here.button("Your chats").click()
    listed = here.page.locator(".list button")
    listed.first.wait_for()
    assert [text.split()[0] for text in listed.all_inner_texts()] == ["Second", "First"]
    assert listed.first.get_attribute("aria-current") == "true"
    listed.last.click()
    here.page.locator(".you", has_text="First").wait_for()
    here.wait_for_end()
    assert here.answer.inner_text().strip().endswith(answer_text(60).strip())
    assert not here.said


def test_judges_and_copies_an_answer(visit):
    here = visit(permissions=["clipboard-read", "clipboard-write"])
    here.ask("Hi [[fake tokens=6]]")
    here.wait_for_end()
    here.button("Copy").click()
    here.page.get_by_role("status").get_by_text("Copied").wait_for()
    assert here.page.evaluate("navigator.clipboard.readText()") == answer_text(6)
    here.button("Bad answer").click()
    here.page.get_by_role("status").get_by_text("Thank you").wait_for()
    here.button("Good answer").click()
    here.page.locator(".up[aria-pressed=true]").wait_for()
    here.page.reload()
    here.page.locator(".up[aria-pressed=true]").wait_for()
    assert here.page.locator(".down").get_attribute("aria-pressed") == "false"
    here.button("Good answer").click()
    here.page.locator(".up[aria-pressed=false]").wait_for()
    (kept,) = here.platform.query(
        "SELECT count(*) FROM chats_feedback WHERE chat_id = %s", [here.kept()["chat"]]
    )
    assert kept == (0,)


# -- What answers can do -----------------------------------------------------------------------------

MARKDOWN = (
    """# Title

First **bold**, *slanted* and `co<b>de`, <img src=x onerror="window.bad = 1">.
Second line: https://example.com/a_(b).

- one [1]
- two
  1. inner
- [good](https://example.com/x) [bad](javascript:window.bad=1) [data](data:text/html,x)

![picture](https://evil.example/pixel.png)

```html
<script>window.bad = 1</script>
```

| Kind | Age |
|:--|---:|
| <i>succinite</i> | 45 |
a | b

> quoted
"""
    + ">" * 5_000
)

CITATIONS = [
    {"number": 1, "document": {"name": "resins.pdf", "path": None}, "page": 3},
    {"number": 2, "document": {"name": "Page", "path": "https://example.com/page"}, "page": None},
]


def test_answers_become_text_and_links_and_load_nothing(visit):
    here = visit()
    here.ask("Hi [[fake tokens=6]]")
    here.wait_for_end()
    asked: list[str] = []
    here.page.on("request", lambda request: asked.append(request.url))
    said = {"id": "m", "role": "assistant", "content": MARKDOWN, "citations": CITATIONS}
    here.shows_instead([said])
    log = here.page.locator(".log")
    expect(log.locator("img, script, iframe, style, object")).to_have_count(0)
    assert here.page.evaluate("window.bad") is None
    assert not [url for url in asked if "127.0.0.1" not in url]
    links = {a.inner_text(): a for a in log.locator("a").all()}
    assert {text: a.get_attribute("href") for text, a in links.items()} == {
        "https://example.com/a_(b)": "https://example.com/a_(b)",
        "good": "https://example.com/x",
        "picture": "https://evil.example/pixel.png",
        "Page": "https://example.com/page",
    }
    assert all("noopener" in (a.get_attribute("rel") or "") for a in links.values())
    expect(log.get_by_role("heading", name="Title")).to_have_count(1)
    expect(log.locator("strong")).to_have_text(["resin", "bold"])
    expect(log.locator("pre")).to_have_text("<script>window.bad = 1</script>")
    expect(log.locator(".said > ul > li")).to_have_count(3)
    expect(log.locator("th")).to_have_text(["Kind", "Age"])
    expect(log.locator("td")).to_have_text(["<i>succinite</i>", "45", "a", "b"])
    assert log.locator("ul ol li").inner_text() == "inner"
    assert log.locator(".sources li").all_inner_texts() == ["[1] resins.pdf, p. 3", "[2] Page"]


def test_is_small():
    """What every page of a site loads: less than most of its pictures."""
    assert (ROOT / "public_api/static/amber-widget.js").stat().st_size < 27_000


SHOWN = """Amber is **fossil resin**: the resin of trees that fell some 45 million years ago, and hardened.

1. Resin ran down the bark and caught what sat there.
2. Sediment covered it; the volatile parts went [1].
3. What is left is hard enough to be polished.

It floats in salt water: its density is `1.05 to 1.10 g/cm³`."""


@pytest.mark.skipif(not SCREENSHOT, reason="WIDGET_SCREENSHOT names no file")
def test_has_its_picture_taken(visit):
    """`make widget-picture`; the question and its answer are made up, all else is real."""
    here = visit(viewport={"width": 860, "height": 640})
    here.ask("Hi [[fake tokens=6]]")
    here.wait_for_end()
    asked = {"id": "1", "role": "human", "content": "How does amber come about?"}
    said = {"id": "2", "role": "assistant", "content": SHOWN, "citations": CITATIONS[:1]}
    here.shows_instead([asked, said])
    here.page.screenshot(path=SCREENSHOT)
