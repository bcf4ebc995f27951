"""The widget for keyboards, screen readers, small screens and several languages."""

from typing import TYPE_CHECKING

import pytest

from tests.e2e.kit.axe import assert_accessible
from tests.e2e.kit.browser import expect, web_page, why_there_is_none
from tests.e2e.widget.visitor import WELCOME, assistant, embedded, visit
from tests.fakes.answers import answer_text

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["assistant", "visit"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(bool(why_there_is_none()), reason=why_there_is_none() or "there is one"),
]


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
    expect(here.page.get_by_role("dialog")).not_to_be_visible()
    here.page.keyboard.press("Enter")
    assert focused(here.page) == "Your message"
    here.page.keyboard.type("One")
    here.page.keyboard.press("Shift+Enter")
    here.page.keyboard.type("two [[fake tokens=6]]")
    here.page.keyboard.press("Enter")
    here.wait_for_end()
    expect(here.page.locator(".you")).to_contain_text("One\ntwo")
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
    expect(dialog).to_be_visible()
    assert dialog.get_by_role("log", name="Conversation").get_attribute("aria-busy") == "false"
    expect(dialog.get_by_role("heading", name="Marie")).to_be_visible()
    for control in dialog.get_by_role("button").all():
        assert control.get_attribute("aria-label") or control.inner_text()
    expect(here.page.get_by_role("status"), "it is read out").to_contain_text(
        answer_text(6).strip()
    )


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
    ("locale", "send"),
    [("zh-CN", "发送"), ("zh-TW", "发送"), ("de-AT", "Senden"), ("fr-FR", "Send")],
)
def test_speaks_the_browser_s_language_if_it_can(visit, locale, send):
    expect(visit(locale=locale).button(send)).to_be_visible()


def test_on_a_phone_the_keyboard_waits_until_it_is_asked_for_and_hides_no_answer(visit):
    phone = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}
    here = visit(**phone)
    expect(here.page.get_by_role("log")).to_be_focused()
    assert here.box.evaluate("(box) => getComputedStyle(box).fontSize") == "16px", (
        "no zoom in Safari"
    )
    here.ask("Tell me. [[fake rich=1]]")
    here.wait_for_end()
    here.page.set_viewport_size({"width": 390, "height": 380})
    expect(here.answer.get_by_role("button", name="Copy")).to_be_in_viewport()


def test_a_table_has_the_widget_s_colours_on_a_page_without_a_doctype(visit, assistant):
    here = visit(color_scheme="dark")
    html = embedded(here.platform, assistant()).replace("<!doctype html>", "", 1)
    with web_page(html) as address:
        here.open(address)
        assert here.page.evaluate("document.compatMode") == "BackCompat"
        here.ask("Tell me. [[fake rich=1]]")
        here.wait_for_end()
        colour = "(element) => getComputedStyle(element).color"
        assert here.answer.locator("td").first.evaluate(colour) == here.answer.evaluate(colour)
