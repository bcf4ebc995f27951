"""How an answer is drawn: Markdown, formulas and code, times, texts from right to left."""

import re

import pytest

from tests.e2e.kit.browser import expect
from tests.e2e.web.visitor import mark, say

pytestmark = pytest.mark.e2e


RICH = r"""# Title

Text with **weight**, `code`, ~~no~~ and a [link](https://example.com/a).

| Name | Count |
|:--|--:|
| alpha | 12 |

```python
def add(a, b):
    return a + b  # easy
```

1. one
2. two
   - inner

> said

Inline \(a^2 + b^2\), money $5 and $6, and

$$\int_0^1 x^2 dx$$
"""


def test_markdown_is_shown_as_it_is_meant(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Show me. {say(RICH)}")
    here.wait_for_end()
    answer = here.answer.locator(".markdown")
    answer.locator(".katex").nth(1).wait_for()
    expect(answer.locator(".katex")).to_have_count(2)
    expect(answer.locator(".katex-display")).to_have_count(1)
    expect(answer).to_contain_text("$5 and $6")
    answer.locator(".hljs-keyword").first.wait_for()
    expect(answer.get_by_role("table").locator("td")).to_have_text(["alpha", "12"])
    expect(answer.get_by_role("heading", name="Title")).to_have_count(1)
    link = answer.get_by_role("link", name="link")
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    answer.get_by_role("button", name="Copy code").click()
    here.sees("Copied")
    assert (
        here.page.evaluate("() => navigator.clipboard.readText()")
        == "def add(a, b):\n    return a + b  # easy"
    )
    here.is_accessible()


def test_what_streams_is_drawn_as_what_is_read_later(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Much. {mark(rich=6, itl=5)}")
    here.wait_for_end()
    here.page.locator(".hljs-keyword").nth(5).wait_for()
    streamed = here.page.locator(".answer .markdown").inner_html()
    here.page.reload()
    here.wait_for_end()
    here.page.locator(".hljs-keyword").nth(5).wait_for()
    assert here.page.locator(".answer .markdown").inner_html() == streamed


def test_tasks_have_boxes(visit, person):
    here = visit()
    here.open_chat(
        person.import_chat(
            "Tasks", "What is left?", "- [x] Bleed it\n- [ ] Close *it*\n- [link](https://a.org)"
        )
    )
    items = here.answer.locator("li")
    expect(items).to_have_text(["☑Bleed it", "☐Close it", "link"])
    here.page.get_by_role("img", name="Done:").wait_for()
    assert items.first.evaluate("(item) => getComputedStyle(item).listStyleType") == "none"
    here.is_accessible()


def test_a_quote_from_right_to_left_stands_off_its_bar(visit, person):
    here = visit()
    here.open_chat(person.import_chat("Quote", "مرحبا", "مرحبا\n\n> اقتباس"))
    quote = here.answer.locator("blockquote")
    assert quote.evaluate("(quote) => getComputedStyle(quote).paddingRight") == "16px"


def test_times_are_written_as_where_the_person_is(visit, person):
    chat_id = person.import_chat("Times", "When?", "Now.")
    for locale, pattern in (("en-GB", r"^\d\d:\d\d$"), ("en-US", r"^\d{1,2}:\d\d\s[AP]M$")):
        here = visit(locale=locale)
        here.open_chat(chat_id)
        expect(here.answer.locator("time")).to_have_text(re.compile(pattern))


def test_a_text_from_right_to_left_is_set_so(visit, person):
    here = visit()
    here.open_chat(person.import_chat("Right", "مرحبا", "مرحبا بالعالم\n\nAnd in English."))
    paragraphs = here.answer.locator(".markdown p")
    expect(paragraphs).to_have_count(2)
    box = here.answer.locator(".markdown").bounding_box()
    ends = [
        each.evaluate(
            "(p) => { const r = document.createRange(); r.selectNodeContents(p);"
            " const b = r.getBoundingClientRect(); return [b.left, b.right]; }"
        )
        for each in (paragraphs.first, paragraphs.last)
    ]
    assert box is not None
    assert ends[0][1] == pytest.approx(box["x"] + box["width"], abs=2)
    assert ends[1][0] == pytest.approx(box["x"], abs=2)
