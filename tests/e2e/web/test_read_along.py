"""With a keyboard alone, with a screen reader, in the dark, on a phone, in Chinese, on paper."""

import pytest

from tests.e2e.kit.browser import expect
from tests.e2e.web.visitor import mark

pytestmark = pytest.mark.e2e

PHONE = {"width": 390, "height": 844}


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, PHONE], ids=["wide", "phone"])
def test_axe_finds_nothing_while_nothing_is_there_and_while_it_streams(visit, person, size):
    here = visit(viewport=size).open()
    here.composer.wait_for()
    here.is_accessible()
    here.ask(f"Tell me. {mark(tokens=400, itl=30)}")
    here.wait_for_words()
    here.is_accessible()
    assert here.page.locator(".answer.live").count(), "while it streams"
    here.button("Stop").click()
    here.wait_for_end()
    here.is_accessible()


def test_axe_finds_nothing_in_the_side_bar_of_a_phone(visit):
    here = visit(viewport=PHONE).open()
    here.button("Open the sidebar").click()
    here.is_accessible()
    here.press("Escape")
    here.page.locator(".sidebar").wait_for(state="detached")
    assert here.focus() == "Open the sidebar"


def test_everything_is_reached_with_the_keyboard_alone(visit, person):
    person.import_chat("By keys", "A question", "An answer")
    here = visit().open()
    here.has_focus("composer")
    here.page.keyboard.type(f"Typed {mark(tokens=5)}")
    here.press("Enter")
    here.wait_for_end()
    here.press("Shift+Tab")
    names = set()
    for _ in range(60):
        names.add(here.focus().strip())
        here.press("Shift+Tab")
    assert {"Copy text", "Regenerate", "Why this answer?", "Good answer", "Edit"} <= names
    assert any("By keys" in name for name in names)
    here.press("Control+k")
    here.has_focus("chat-search")
    here.page.keyboard.type("By keys")
    here.page.locator(".results .chat-link").wait_for()
    here.link("By keys").focus()
    here.press("Enter")
    here.sees("An answer")
    here.has_focus("composer")
    here.press("Control+Shift+KeyO")
    here.sees("What would you like to know?")


def test_the_help_sheet_lists_the_shortcuts(visit):
    here = visit().open()
    here.composer.wait_for()
    here.press("Control+/")
    here.dialog.get_by_role("heading", name="Keyboard shortcuts").wait_for()
    here.sees("Search chats")
    here.is_accessible()
    here.press("Escape")
    here.dialog.wait_for(state="detached")
    here.has_focus("composer")


def test_a_menu_is_walked_with_arrows(visit, person):
    person.import_chat("Walk", "A", "B")
    here = visit().open()
    here.button("Actions for Walk").focus()
    here.press("Enter")
    assert here.focus() == "Rename"
    here.press("ArrowDown")
    assert here.focus() == "Pin"
    here.press("End")
    assert here.focus() == "Delete"
    here.press("ArrowDown")
    assert here.focus() == "Rename"
    here.press("Escape")
    assert here.focus() == "Actions for Walk"


def test_focus_stays_in_a_dialog_and_comes_back(visit, person):
    here = visit()
    here.open_chat(person.import_chat("Held", "A", "B"))
    here.button("Held").click()
    for _ in range(8):
        here.press("Tab")
        assert here.page.evaluate(
            "() => document.activeElement === document.body"
            " || Boolean(document.activeElement.closest('dialog'))"
        )
    here.press("Escape")
    here.dialog.wait_for(state="detached")
    assert here.focus() == "Held"


def test_the_way_to_the_content_is_short(visit, person):
    here = visit()
    here.open_chat(person.import_chat("Short way", "A", "B"))
    here.page.locator(".skip").focus()
    assert here.focus() == "Skip to content"
    here.press("Enter")
    assert here.focus_id() == "content"


def test_chinese_is_chosen_and_kept(visit):
    here = visit().open()
    here.page.locator(".account button").click()
    here.select("Appearance")
    here.is_accessible()
    here.dialog.get_by_label("中文").check()
    here.page.get_by_role("heading", name="外观与语言").wait_for()
    here.dialog.get_by_label("深色").check()
    here.page.reload()
    here.sees("您想了解什么")
    assert here.page.evaluate("() => document.documentElement.lang") == "zh-Hans"
    assert here.page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    here.is_accessible()


def test_a_chinese_browser_is_spoken_to_in_chinese(visit):
    here = visit(locale="zh-CN", is_signed_in=False).open()
    here.page.get_by_role("heading", name="登录").wait_for()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_german_browser_is_spoken_to_in_german_and_its_long_words_fit(visit, width):
    here = visit(locale="de-DE", viewport={"width": width, "height": 844}).open()
    here.sees("Was möchten Sie wissen?")
    if width == 390:
        here.button("Seitenleiste öffnen").click()
    places = here.page.locator(".pages a")
    expect(places).to_have_count(6)
    assert places.evaluate_all("(all) => all.every((a) => a.scrollWidth <= a.clientWidth)")
    here.is_accessible()
    here.link("Verbrauch").click()
    dates = here.page.locator("input[type=date]")
    dates.last.wait_for()
    assert dates.last.evaluate("(input) => input.getBoundingClientRect().right <= innerWidth - 16")


def test_a_failure_is_told_in_chinese(visit, person):
    here = visit(locale="zh-CN")
    person.assistant("Failing", model="fake-401")
    here.open_chat(person.new_chat("Failing"))
    here.ask("你好")
    here.sees("模型服务商拒绝了 Amber 的密钥")


def test_composing_chinese_does_not_send(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.composer.fill("ni hao")
    here.composer.evaluate(
        "(box) => box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true }))"
    )
    here.page.wait_for_timeout(200)
    expect(here.composer).to_have_value("ni hao")
    expect(here.questions).to_have_count(0)


def test_paper_has_the_whole_conversation_and_nothing_else(visit, person):
    here = visit()
    here.open_chat(person.import_chat("Printed", *(f"Part {n} of it" for n in range(60))))
    here.answer.wait_for()  # else nothing is there yet that hears of it
    here.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    here.page.emulate_media(media="print")
    here.page.wait_for_function(
        "() => document.querySelectorAll('.bubble').length + document.querySelectorAll('.answer').length >= 50"
    )
    for selector in (".sidebar", ".composer", ".message-actions"):
        expect(here.page.locator(selector).first).not_to_be_visible()


def test_no_motion_for_whoever_wants_none(visit, person):
    here = visit(reduced_motion="reduce")
    here.open_chat(person.new_chat())
    here.ask(f"Tell me. {mark(tokens=30, ttft=1500)}")
    dots = here.page.locator(".pending .dots")
    dots.wait_for()
    assert dots.evaluate("(e) => getComputedStyle(e).animationIterationCount") == "1"
    here.wait_for_end()


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_its_window(visit, person, width):
    here = visit(viewport={"width": width, "height": 800})
    long = "A very long question without an end " * 5 + "W" * 300
    text = f"{long}\n\n```\n{'x = ' * 80}\n```\n\n|{'a|' * 30}\n|{'-|' * 30}\n|{'b|' * 30}"
    chat_id = person.import_chat(long[:250], long, text)
    for path in ("/", f"/chats/{chat_id}", "/claim", "/assistants", "/libraries", "/settings"):
        here.open(path)
        here.page.locator("h1").first.wait_for()
        here.page.wait_for_timeout(200)
        wide = here.page.evaluate(
            "() => [...document.querySelectorAll('html, body, #app, main, .timeline, .composer, .chat-head')]"
            ".filter((each) => each.scrollWidth > each.clientWidth + 1"
            " || each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.className)"
        )
        assert wide == [], path


# -- On a phone ------------------------------------------------------------------------------------

TOUCH = {"viewport": PHONE, "has_touch": True, "is_mobile": True}


def test_enter_on_a_phone_is_a_new_line_and_the_button_sends(visit, person):
    here = visit(**TOUCH)
    here.open_chat(person.new_chat())
    assert here.focus_id() != "composer", "a keyboard would cover what is to be read"
    here.composer.tap()
    here.page.keyboard.type("One")
    here.press("Enter")
    here.page.keyboard.type("Two [[fake tokens=5]]")
    expect(here.composer).to_have_value("One\nTwo [[fake tokens=5]]")
    here.button("Send").tap()
    here.wait_for_end()
    assert here.focus_id() != "composer"
    expect(here.questions).to_have_count(1)
    here.is_accessible()


def test_words_of_a_wide_table_are_not_broken_on_a_phone(visit, person):
    table = (
        "| Case | Discriminant | Real roots | Note |\n|---|---|---|---|\n"
        "| I | positive | 2 | the usual one, of which an explanation is given |"
    )
    here = visit(**TOUCH)
    here.open_chat(person.import_chat("Table", "A table?", table))
    cell = here.page.get_by_role("cell", name="the usual one")
    assert cell.evaluate("(cell) => cell.clientWidth") > 120
    assert here.page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("size", [(360, 300), (640, 220)])
def test_a_first_question_can_be_sent_above_the_keyboard_of_a_small_phone(visit, size):
    width, height = size
    here = visit(**TOUCH | {"viewport": {"width": width, "height": height}}).open()
    here.composer.tap()
    box = here.button("Send").bounding_box()
    assert box["y"] > 0
    assert box["y"] + box["height"] <= height
    assert here.composer.get_attribute("aria-describedby")
    expect(here.page.locator("#composer-hint")).to_have_text("")


def test_a_phone_on_its_side_shows_chats_in_its_side_bar(visit, person):
    person.import_chat("Lying", "Hi", "Hello")
    here = visit(**TOUCH | {"viewport": {"width": 844, "height": 390}}).open()
    here.composer.wait_for()
    here.button("Open the sidebar").tap()
    assert here.page.locator(".sidebar-scroll").bounding_box()["height"] > 100
    assert here.link("Settings").bounding_box()["y"] < 390
    here.is_accessible()


def test_a_long_formula_is_scrolled_by_itself(visit, person):
    formula = " + ".join(rf"\frac{{a_{{{n}}}}}{{b_{{{n}}}}}" for n in range(30))
    here = visit(**TOUCH)
    here.open_chat(person.import_chat("Formula", "A sum?", f"So:\n\n$${formula}$$"))
    here.page.locator(".katex-display").wait_for()
    wide = "(box) => box.scrollWidth > box.clientWidth"
    assert here.page.locator(".katex-display").evaluate(wide)
    assert not here.page.locator(".timeline").evaluate(wide)
