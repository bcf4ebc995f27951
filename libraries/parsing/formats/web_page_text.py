"""Extract the main part of a web page as Markdown with its links, by trafilatura, in the child.

Unlike `html_text`, which keeps all that a document says, this leaves out what surrounds a page's
text: menus, banners, advertisements. Loads trafilatura (28 MB); see `web_page` for the parent's
side.
"""

import re
from configparser import ConfigParser
from functools import cache
from typing import Final

import trafilatura
from lxml import html
from lxml.etree import ParserError
from trafilatura.settings import use_config

from libraries.parsing.encodings import decode_text
from libraries.parsing.formats.any_document import charset_of
from libraries.parsing.kinds import is_html_type
from libraries.parsing.result import MAX_PAGE_CHARS, PAGE_TOO_LARGE, Unreadable

FAST_FROM_CHARS: Final = 300_000
"""Longer pages are not read by the second and third algorithm too: a third less time (measured)."""
MAX_TITLE_CHARS: Final = 300
LEAST_CHARS: Final = "50"
"""A main part below this is not believed, and the bare text of the page is taken. trafilatura's own
250 takes the links from every short page, and from most Chinese ones."""

_LOOKS_LIKE_HTML: Final = re.compile(r"\s*+<(!doctype html|html|head|body)\b", re.IGNORECASE)


@cache
def _config() -> ConfigParser:
    config = use_config()
    config.set("DEFAULT", "MIN_EXTRACTED_SIZE", LEAST_CHARS)
    return config


def markdown_of_web_page(content: bytes, *, url: str, mime_type: str) -> str | None:
    """Return a page's title in the first line, and its text after it; either may be empty.

    Returns None for what is not HTML, whatever `mime_type` (a Content-Type) says. Links become
    absolute, by the page's own `<base>` if it has one. Raises Unreadable.
    """
    text = decode_text(content, charset=charset_of(mime_type))
    if not is_html_type(mime_type) and not _LOOKS_LIKE_HTML.match(text):
        return None
    if len(text) > MAX_PAGE_CHARS:
        raise Unreadable(PAGE_TOO_LARGE)
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True)
    try:
        page = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except ParserError:  # nothing but comments or white space
        return "\n"
    page.make_links_absolute(url, handle_failures="ignore")
    title = " ".join((page.findtext(".//title") or "").split())[:MAX_TITLE_CHARS]
    main_part = trafilatura.extract(
        page,
        output_format="markdown",
        include_links=True,
        favor_recall=True,
        fast=len(text) >= FAST_FROM_CHARS,
        config=_config(),
    )
    return f"{title}\n{main_part or ''}"
