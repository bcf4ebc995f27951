"""The widget in a real browser, on a stranger's page: it asks, streams, survives reloads and lost
connections; keyboards and screen readers get along with it; answers cannot do anything.

The page is examples/embed.html, under the strictest policy that lets it load the widget.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.axe import assert_accessible
from tests.e2e.browser import chromium, web_page, why_there_is_none
from tests.e2e.client import Client
from tests.e2e.platform import Platform
from tests.fake_answers import answer_text

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(bool(why_there_is_none()), reason=why_there_is_none() or "there is one"),
]

ROOT = Path(__file__).resolve().parent.parent.parent
EMBED = (ROOT / "examples" / "embed.html").read_text()
SCREENSHOT = os.environ.get("WIDGET_SCREENSHOT", "")
SLOW = "Tell me. [[fake tokens=60 itl=40]]"
"""2.4 seconds of text."""

PATIENCE_MS = 30_000
PLAIN: dict[str, Any] = {"greeting": "", "suggested_questions": [], "guest_files": False}


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with chromium() as running:
        yield running


class Visit:
    """A visitor in front of a page with the widget."""

    def __init__(self, platform: Platform, ann: Client, context: "BrowserContext") -> None:
        self.platform, self.ann = platform, ann
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.said: list[str] = []
        """What the browser complained of: refused by policy, errors of scripts."""
        self.page.on("console", lambda m: self.said.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.page.locator(".chat").click()

    def button(self, name: str) -> "Locator":
        return self.page.get_by_role("button", name=name)

    @property
    def box(self) -> "Locator":
        return self.page.get_by_role("textbox")

    @property
    def answer(self) -> "Locator":
        """The last thing the assistant said."""
        return self.page.locator(".said:not(.you)").last

    def ask(self, question: str) -> None:
        self.box.fill(question)
        self.box.press("Enter")

    def wait_for_text(self, words: str) -> None:
        self.page.locator(".log").get_by_text(words).first.wait_for()

    def wait_for_end(self) -> None:
        self.button("Send").wait_for()

    def shows_instead(self, messages: list[dict[str, Any]]) -> None:
        """After a reload, these as the conversation."""
        page = {"next": None, "previous": None, "results": messages}
        anywhere = {"Access-Control-Allow-Origin": "*"}
        self.page.route(
            re.compile("/messages/"), lambda route: route.fulfill(json=page, headers=anywhere)
        )
        self.page.reload()
        self.page.locator(".sources").wait_for()

    def kept(self) -> dict[str, Any]:
        """What the widget keeps in this browser."""
        kept: dict[str, Any] = self.page.evaluate("JSON.parse(Object.values(localStorage)[0])")
        return kept


def embedded(platform: Platform, assistant_id: str) -> str:
    amber = f"http://127.0.0.1:{platform.port}"
    return EMBED.replace("http://127.0.0.1:8000", amber).replace("ASSISTANT_ID", assistant_id)


@pytest.fixture
def assistant(platform: Platform, ann: Client) -> Any:
    """`assistant("fake-slow")`: the id of a public one with this model."""

    def make(model: str = "fake-model", **fields: Any) -> str:
        assistant_id = ann.assistant(model)
        changes = {"public": True, "name": "Marie", "description": "Ask me about **resin**."}
        changes |= PLAIN | fields
        assert ann.request("PATCH", f"assistants/{assistant_id}/", changes).status == 200
        return assistant_id

    return make


@pytest.fixture
def visit(platform: Platform, ann: Client, browser: "Browser", assistant: Any) -> Iterator[Any]:
    """`visit("fake-slow")`: the page with an assistant of this model, its panel open."""
    amber = f"http://127.0.0.1:{platform.port}"
    policy = f"default-src 'none'; script-src {amber}; connect-src {amber}"
    servers, contexts, visits = [], [], []

    def make(
        model: str = "fake-model", fields: Mapping[str, Any] | None = None, **options: Any
    ) -> Visit:
        page = embedded(platform, assistant(model, **(fields or {})))
        server = web_page(page, Content_Security_Policy=policy)
        servers.append(server)
        address = server.__enter__()
        contexts.append(browser.new_context(**({"locale": "en-GB"} | options)))
        visits.append(Visit(platform, ann, contexts[-1]))
        visits[-1].open(address)
        return visits[-1]

    try:
        yield make
    finally:
        for context in contexts:
            context.close()
        for server in servers:
            server.__exit__(None, None, None)
    refused = [text for each in visits for text in each.said if "Content Security" in text]
    assert not refused


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
    thought = here.page.get_by_text("I thought of")
    assert not thought.is_visible()
    here.page.get_by_text("Thoughts", exact=True).click()
    here.wait_for_text("the river keeps")
    assert thought.is_visible(), "over the redraws of the answer that comes"
    here.wait_for_end()
    assert here.answer.inner_text().strip().endswith(answer_text(60).strip())
    here.page.reload()
    here.page.get_by_text("Thoughts", exact=True).wait_for()
    assert not thought.is_visible()
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
    assert here.page.locator(".you").count() == 1
    assert here.answer.inner_text() == whole


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
    assert here.page.locator(".you").count() == 1, "the question is not said twice"
    assert not alert.is_visible()


def test_without_a_network_the_question_is_not_lost(visit):
    here = visit()
    here.page.context.set_offline(True)
    here.ask("Hi [[fake tokens=6]]")
    here.wait_for_text("no connection")
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
    assert not here.page.get_by_role("alert").count()


def test_an_assistant_that_is_not_public_shows_no_button(visit, ann):
    here = visit()
    address = here.page.url
    ann.request("PATCH", f"assistants/{ann.assistant('fake-model')}/", {"public": False})
    with here.page.expect_console_message(lambda m: "no assistant" in m.text):
        here.page.goto(address)
    assert not here.page.locator("#amber-widget").count()


# -- More than one question ------------------------------------------------------------------------

WELCOME = {
    "greeting": "Hello, I am **Marie**. Show me your stones.",
    "suggested_questions": ["What is amber? [[fake tokens=6]]", "Does it float?"],
    "guest_files": True,
}


def test_greets_suggests_and_asks_by_one_click(visit):
    here = visit(fields=WELCOME)
    here.wait_for_text("Show me your stones.")
    suggested = here.page.get_by_role("group", name="Suggested questions").get_by_role("button")
    assert suggested.all_inner_texts() == WELCOME["suggested_questions"]
    suggested.first.click()
    here.wait_for_text("the river keeps")
    here.wait_for_end()
    assert "What is amber?" in here.page.locator(".you").inner_text()
    assert not suggested.count(), "they are for an empty chat"
    here.page.reload()
    here.page.locator(".you").wait_for()
    assert not suggested.count()


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


def test_a_file_that_is_refused_is_told_and_the_question_kept(visit, ann):
    here = visit(fields=WELCOME)
    assistant_id = ann.assistant("fake-model")
    ann.request("PATCH", f"assistants/{assistant_id}/", {"guest_files": False})
    here.box.fill("How many?")
    with here.page.expect_file_chooser() as chooser:
        here.button("Attach a file").click()
    chooser.value.set_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"one"})
    assert "does not accept files" in here.page.get_by_role("alert").inner_text()
    assert here.box.input_value() == "How many?"
    assert not here.page.locator(".file").count()


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


# -- Reading it without eyes or mouse --------------------------------------------------------------


def focused(page: "Page") -> str:
    """The accessible name of what has the focus, inside the shadow root or not."""
    script = """() => {
        const inside = document.activeElement.shadowRoot?.activeElement;
        const at = inside ?? document.activeElement;
        return at.ariaLabel ?? at.labels?.[0]?.textContent ?? at.tagName;
    }"""
    return str(page.evaluate(script))


def test_keyboards_get_everywhere_in_the_order_of_reading(visit):
    here = visit()
    assert focused(here.page) == "Your message"
    order = []
    for _ in range(4):
        here.page.keyboard.press("Shift+Tab")
        order.append(focused(here.page))
    assert order == ["Conversation", "Close", "Your chats", "New chat"]
    here.page.keyboard.press("Escape")
    assert focused(here.page) == "Chat with Marie", "where it was opened from"
    assert not here.page.get_by_role("dialog").is_visible()
    here.page.keyboard.press("Enter")
    assert focused(here.page) == "Your message"
    here.page.keyboard.type("One")
    here.page.keyboard.press("Shift+Enter")
    here.page.keyboard.type("two [[fake tokens=6]]")
    here.page.keyboard.press("Enter")
    here.wait_for_end()
    assert "One\ntwo" in here.page.locator(".you").inner_text()
    assert focused(here.page) == "Your message"


def test_on_a_small_screen_the_focus_stays_inside(visit):
    here = visit(viewport={"width": 400, "height": 700})
    names = set()
    for _ in range(12):
        here.page.keyboard.press("Tab")
        names.add(focused(here.page))
    reached = {"Your message", "Send", "New chat", "Your chats", "Close", "Conversation"}
    assert names - {"BODY"} == reached
    panel = here.page.get_by_role("dialog").bounding_box()
    assert panel == {"x": 0, "y": 0, "width": 400, "height": 700}


def test_everything_has_a_name_and_a_role(visit):
    here = visit()
    here.ask("Hi [[fake tokens=6]]")
    here.wait_for_end()
    dialog = here.page.get_by_role("dialog", name="Marie")
    assert dialog.is_visible()
    assert dialog.get_by_role("log", name="Conversation").get_attribute("aria-busy") == "false"
    assert dialog.get_by_role("heading", name="Marie").is_visible()
    for control in dialog.get_by_role("button").all():
        assert control.get_attribute("aria-label") or control.inner_text()
    assert answer_text(6).strip() in here.page.get_by_role("status").inner_text(), "it is read out"


CONTRAST = """() => {
    const root = document.querySelector('#amber-widget').shadowRoot;
    const light = (rgb) => rgb.map((c) => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
    const parts = (css) => css.match(/[\\d.]+/g).map(Number);
    const ground = (at) => {
        for (; at; at = at.parentElement) {
            const found = parts(getComputedStyle(at).backgroundColor);
            if (found.length == 3 || found[3] == 1) return found.slice(0, 3);
        }
        return [255, 255, 255];
    };
    const texts = [...root.querySelectorAll('h2, .said, .note, footer, textarea, a, code')];
    return texts.filter((at) => at.checkVisibility()).map((at) => {
        const [a, b] = [parts(getComputedStyle(at).color).slice(0, 3), ground(at)].map(light);
        return [at.tagName + '.' + at.className, (Math.max(a, b) + .05) / (Math.min(a, b) + .05)];
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_their_ground(visit, scheme):
    """WCAG 2.2, 1.4.3: 4.5 to 1."""
    here = visit("fake-400", color_scheme=scheme)
    here.ask("Hi")
    here.page.get_by_role("alert").wait_for()
    measured = here.page.evaluate(CONTRAST)
    assert len(measured) >= 5
    assert not [(name, ratio) for name, ratio in measured if ratio < 4.5]


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_axe_finds_nothing(visit, size):
    here = visit(fields=WELCOME, viewport={"width": size[0], "height": size[1]})
    here.wait_for_text("Show me your stones.")
    assert_accessible(here.page, within="#amber-widget")
    here.ask("Hi [[fake tokens=6]]")
    here.wait_for_end()
    here.button("Your chats").click()
    here.page.locator(".list").wait_for()
    assert_accessible(here.page, within="#amber-widget")
    here.page.locator(".list button").click()
    here.button("Good answer").click()
    here.page.locator(".up[aria-pressed=true]").wait_for()
    assert_accessible(here.page, within="#amber-widget")


def test_who_wants_no_motion_gets_none(visit):
    here = visit(reduced_motion="reduce")
    here.ask("Tell me. [[fake ttft=2000 tokens=6]]")
    here.page.locator(".dots").wait_for()
    running = "document.querySelector('#amber-widget').shadowRoot.getAnimations().length"
    assert here.page.evaluate(running) == 0
    here.wait_for_end()


@pytest.mark.parametrize(
    ("locale", "send"), [("zh-CN", "发送"), ("zh-TW", "发送"), ("fr-FR", "Send")]
)
def test_speaks_the_browser_s_language_if_it_can(visit, locale, send):
    assert visit(locale=locale).button(send).is_visible()


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
    assert log.locator("img, script, iframe, style, object").count() == 0
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
    assert log.get_by_role("heading", name="Title").count() == 1
    assert log.locator("strong").all_inner_texts() == ["resin", "bold"]
    assert log.locator("pre").inner_text() == "<script>window.bad = 1</script>"
    assert log.locator(".said > ul > li").count() == 3
    assert log.locator("ul ol li").inner_text() == "inner"
    assert log.locator(".sources li").all_inner_texts() == ["[1] resins.pdf, p. 3", "[2] Page"]


def test_is_small():
    """What every page of a site loads: less than most of its pictures."""
    assert (ROOT / "public_api/static/amber-widget.js").stat().st_size < 25 * 1024


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
