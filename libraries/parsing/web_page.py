"""A web page read in a child process: the parent's side of `web_page_text`.

    page = read_web_page(html, url="https://example.com/")

The children are the same as documents' and have less time: somebody waits for the answer.
"""

import atexit
import json
from dataclasses import dataclass

from libraries.parsing.child_pool import ChildPool
from libraries.parsing.confinement import ParserLimits

WEB_PAGE = "WEB_PAGE"

_pool = ChildPool(ParserLimits(cpu_seconds=10, wall_seconds=20))
atexit.register(_pool.close)


@dataclass(frozen=True, slots=True)
class WebPage:
    """`text` is Markdown; either may be empty."""

    title: str
    text: str


def read_web_page(html: str, *, url: str) -> WebPage:
    """Blocks, for at most 20 s and however long others are before. `url` is where it came from,
    for its relative links. Raises Unreadable, ParserLost."""
    parsed = _pool.parse(json.dumps({"html": html, "url": url}).encode(), kind=WEB_PAGE)
    title, _, text = parsed.text.partition("\n")
    return WebPage(title, text.strip())
