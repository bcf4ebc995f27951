"""The main part of a web page as Markdown with its links, by trafilatura: what the child does.

Other than `html_text`, which keeps all that a document says, this leaves out what surrounds a
page's text: menus, banners, advertisements. Loads trafilatura (28 MB); see `web_page` for the
parent's side.
"""

import json
from configparser import ConfigParser
from functools import cache
from typing import Final

import trafilatura
from lxml import html
from lxml.etree import ParserError
from trafilatura.settings import use_config

FAST_FROM_CHARS: Final = 300_000
"""Longer pages are not read by the second and third algorithm too: a third less time (measured)."""
MAX_TITLE_CHARS: Final = 300
LEAST_CHARS: Final = "50"
"""A main part below this is not believed, and the bare text of the page is taken. trafilatura's own
250 takes the links from every short page, and from most Chinese ones."""


@cache
def _config() -> ConfigParser:
    config = use_config()
    config.set("DEFAULT", "MIN_EXTRACTED_SIZE", LEAST_CHARS)
    return config


def markdown_of_web_page(content: bytes) -> str:
    """`content` is JSON, {"html", "url"}. The first line is the title, which may be empty; so may
    be the text after it. Links become absolute, by the page's own `<base>` if it has one."""
    request = json.loads(content)
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True)
    try:
        page = html.document_fromstring(request["html"].encode("utf-8", "replace"), parser=parser)
    except ParserError:  # nothing but comments or white space
        return "\n"
    page.make_links_absolute(request["url"], handle_failures="ignore")
    title = " ".join((page.findtext(".//title") or "").split())[:MAX_TITLE_CHARS]
    text = trafilatura.extract(
        page,
        output_format="markdown",
        include_links=True,
        favor_recall=True,
        fast=len(request["html"]) >= FAST_FROM_CHARS,
        config=_config(),
    )
    return f"{title}\n{text or ''}"
