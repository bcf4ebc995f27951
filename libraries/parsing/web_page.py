"""Read web pages in child processes: the parent's side of `web_page_text`.

    page = read_web_page(body, url="https://example.com/", mime_type="text/html; charset=gbk")

The children are the same as for documents but have less time: somebody waits for the answer.
"""

import atexit
from dataclasses import dataclass

from libraries.parsing.child_pool import ChildPool
from libraries.parsing.confinement import ParserLimits

_pool = ChildPool(ParserLimits(cpu_seconds=10, wall_seconds=20))
atexit.register(_pool.close)


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page that was read. `text` is Markdown, or the original of a text that is not HTML.

    Either field may be empty.
    """

    title: str
    text: str


def read_web_page(content: bytes, *, url: str, mime_type: str) -> WebPage:
    """Read the page. Blocks for at most 20 s, and while earlier callers occupy all children.

    `url` is where it came from, for its relative links; `mime_type` is its Content-Type. What is
    not declared as HTML may look like it. Raises Unreadable, ParserLost.
    """
    parsed = _pool.parse(content, kind="WEB_PAGE", url=url, mime_type=mime_type)
    title, _, text = parsed.text.partition("\n")
    return WebPage(title, text.strip())
