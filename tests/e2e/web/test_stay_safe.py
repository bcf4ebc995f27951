"""Hostile content, wherever text comes from: nothing of it runs, and nothing is fetched."""

import pytest

from tests.e2e.kit.browser import expect
from tests.e2e.web.visitor import Visitor, call, say
from tools.tests.tool_service import function, serving

pytestmark = pytest.mark.e2e

SCRIPT = "<script>window.pwned=1</script>"
HANDLER = '<img src="https://evil.example/x.png" onerror="window.pwned=1">'
MARKDOWN = [
    SCRIPT,
    HANDLER,
    "![x](https://evil.example/x.png)",
    "![x](https://evil.example/x.png 'title\" onerror=window.pwned=1')",
    "[x](javascript:window.pwned=1)",
    "[x](JaVaScRiPt:window.pwned=1)",
    "[x](data:text/html,<script>window.pwned=1</script>)",
    "[x](vbscript:x) <javascript:window.pwned=1>",
    "<a href='javascript:window.pwned=1'>x</a>",
    "<svg onload=window.pwned=1><style>@import 'https://evil.example/x.css'</style></svg>",
    "<iframe src=https://evil.example></iframe><object data=https://evil.example></object>",
    "<form action=https://evil.example><input autofocus onfocus=window.pwned=1></form>",
    "[ref]: javascript:window.pwned=1\n\n[x][ref]",
    "```html\n<script>window.pwned=1</script>\n```",
    '```"><img src=x onerror=window.pwned=1>\nx\n```',
    r"\(\href{javascript:window.pwned=1}{x}\) $$\includegraphics{https://evil.example/x.png}$$",
    r"$$\htmlData{x=y}{\url{javascript:window.pwned=1}}$$",
    "| <img src=x onerror=window.pwned=1> |\n|---|\n| `<script>` |",
    "[1](https://evil.example) [99] [[1]]",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.pwned=1>",
]


def is_unharmed(here: Visitor, by: str = "") -> None:
    here.page.wait_for_timeout(150)
    assert here.page.evaluate("() => window.pwned") is None, by
    expect(here.page.locator("script:not([src]):not([type=importmap])"), by).to_have_count(0)
    bad = here.page.evaluate(
        "() => [...document.querySelectorAll('#app *')].filter((each) => [...each.attributes].some("
        "({ name, value }) => /^on/.test(name) || (name === 'href' && !/^(https?:|mailto:|\\/|#|blob:)/i.test(value))))"
        ".map((each) => each.outerHTML)"
    )
    assert bad == [], by
    assert (
        here.page.locator(
            ".markdown img, .markdown iframe, .markdown form, .markdown svg:not(.icon, .katex *)"
        ).count()
        == 0
    ), by
    assert not here.asked, by
    assert not here.said, by


def test_nothing_runs_of_what_a_stored_answer_has(visit, person):
    here = visit()
    here.open_chat(person.import_chat(SCRIPT + HANDLER, SCRIPT + HANDLER, "\n\n".join(MARKDOWN)))
    here.answer.locator(".katex, .unreadable").first.wait_for()
    is_unharmed(here)


def test_nothing_runs_of_what_streams(visit, person):
    here = visit()
    for text in MARKDOWN:
        here.open_chat(person.new_chat())
        here.ask(f"Attack. {say(text, itl=5)}")
        here.wait_for_end()
        is_unharmed(here, text)


def test_nothing_runs_of_names(visit, person):
    person.post("assistants/", {"name": HANDLER[:80], "description": SCRIPT, "model": "fake-model"})
    here = visit()
    here.open_chat(person.import_chat(HANDLER, "x", "y"))
    here.page.locator("input[type=file]").set_input_files(
        [{"name": HANDLER.replace("/", "") + ".txt", "mimeType": "text/plain", "buffer": b"x"}]
    )
    here.page.locator(".attachments li").wait_for()
    here.page.locator(".attachments progress").wait_for(state="detached")
    here.ask(f"See {say('ok')}")
    here.wait_for_end(2)
    here.page.get_by_role("searchbox", name="Search chats").fill("evil.example")
    here.page.locator(".results").wait_for()
    here.menu_of_chat(HANDLER)
    here.select("Delete")
    is_unharmed(here)


def test_nothing_runs_of_what_a_tool_returns(visit, person):
    with serving() as tool:
        tool.functions = [function("look_up")]
        tool.reply = lambda _: {"content": SCRIPT + HANDLER}
        made = person.post("tools/", {"kind": "discovery", "discovery_url": tool.url})
        assistant = person.post("assistants/", {"name": "With a tool", "model": "fake-model"})
        person.post(f"assistants/{assistant['id']}/tools/", {"tool_id": made["id"]})
        chat = person.post("chats/", {"assistant_id": assistant["id"]})
        here = visit()
        here.open_chat(chat["id"])
        here.ask(f"Look. {call('look_up', {}, tokens=3)}")
        here.wait_for_end()
        here.page.locator(".tool summary").click()
        assert SCRIPT in here.page.locator(".tool .result").inner_text()
        is_unharmed(here)


def test_an_address_of_the_page_cannot_carry_code(visit):
    here = visit()
    here.open(
        "/chats/%3Cscript%3Ewindow.pwned=1%3C%2Fscript%3E?message=%22%3E%3Cimg%20onerror=x%3E"
    )
    here.page.get_by_role("heading").first.wait_for()
    is_unharmed(here)
