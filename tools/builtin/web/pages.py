"""Fetch a web page through the guarded client and turn it into Markdown for a model.

What strangers wrote is parsed by `libraries.parsing` in a child process with few rights, so that a
hostile page costs that child time and memory and nobody else; here it is only bytes and text. PDF
and Office files are read the same way. Refuses images, audio and the like, more than
LIMITS.max_bytes, and HTML of more than MAX_PAGE_CHARS.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import structlog

from amber.lib.egress import FetchError, FetchLimits, Response, UnsafeAddress, fetch
from libraries.parsing import ParserLost, Unreadable, parse
from libraries.parsing.kinds import HTML_TYPES
from libraries.parsing.result import PAGE_TOO_LARGE
from libraries.parsing.web_page import read_web_page
from tools.protocol import ToolError

logger = structlog.get_logger(__name__)

LIMITS: Final = FetchLimits(total_seconds=20)
READERS_AT_ONCE: Final = 4
"""In one process. They have threads of their own, so that other tools do not wait for them."""

HEADERS: Final = {
    "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, */*;q=0.5",
    "User-Agent": "Mozilla/5.0 (compatible; Amber)",  # many servers answer nothing else
}
UNREAD_TYPES: Final = ("image/", "audio/", "video/", "font/")

NO_TEXT: Final = "There is no text that can be read. It may need a browser that runs its scripts."
UNREADABLE: Final = "What is at this address cannot be read as a text."
TOO_LARGE: Final = "The page is larger than this tool reads."


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was read. `url` is where redirects led; `title` may be empty, `text` is not."""

    url: str
    title: str
    text: str


async def open_page(url: str) -> Page:
    """Fetch and read a page: one request with its redirects, one child process.

    Raises ToolError.
    """
    answer = await _fetch_page(url)
    return await asyncio.get_running_loop().run_in_executor(_readers(), _read, answer)


async def _fetch_page(url: str) -> Response:
    try:
        answer = await fetch("GET", url, headers=HEADERS, limits=LIMITS)
    except FetchError as error:
        raise ToolError(TOO_LARGE if error.reason == "too_large" else error.message) from None
    except UnsafeAddress as error:
        raise ToolError(f"{error.message} It must begin with http:// or https://.") from None
    if not answer.is_success:
        raise ToolError(f"The address answers with status {answer.status}, not with a page.")
    if answer.mime_type.startswith(UNREAD_TYPES):
        raise ToolError(f"The address answers with {answer.mime_type}, not with text.")
    return answer


def _read(answer: Response) -> Page:
    try:
        page = _parse_page(answer)
    except Unreadable as refusal:
        logger.info("page_unreadable", reason=str(refusal))
        raise ToolError(TOO_LARGE if str(refusal) == PAGE_TOO_LARGE else UNREADABLE) from None
    except ParserLost:
        raise ToolError("The page could not be read this time. Try again.") from None
    if not page.text:
        raise ToolError(NO_TEXT)
    return page


def _parse_page(answer: Response) -> Page:
    """Parse the answer in a child process. Raises Unreadable, ParserLost."""
    content_type = answer.headers.get("content-type", "")
    if _may_be_html(answer):
        read = read_web_page(answer.body, url=answer.url, mime_type=content_type)
        return Page(answer.url, read.title, read.text)
    parsed = parse(answer.body, name="", mime_type=content_type)
    return Page(answer.url, "", parsed.text.strip())


def _may_be_html(answer: Response) -> bool:
    """Whether to parse it as HTML: without a type it may be HTML, unless it is a PDF or a ZIP."""
    if answer.mime_type not in HTML_TYPES | {"", "application/octet-stream"}:
        return False
    return not answer.body.startswith((b"%PDF-", b"PK\3\4"))


@lru_cache(maxsize=1)
def _readers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(READERS_AT_ONCE, thread_name_prefix="page-reader")
