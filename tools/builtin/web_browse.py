"""The built-in tool `web_browse` reads a page of the web as text, one part at a time.

It is offered unless the assistant disables web browsing. Every call fetches the page again: nothing
of it is kept. It runs no scripts, fills in no forms and follows no links by itself. Once a turn has
read what strangers wrote, it opens only addresses that they cannot have had made
(`tools.builtin.web.addresses`).
"""

from typing import Annotated, Final

from django.conf import settings

from amber.lib.database.connections import in_thread
from engine.history.prompt import one_line
from engine.text.tokens import at_most_tokens, count_text
from tools.builtin.web.addresses import known_address
from tools.calling.registry import register_tool
from tools.protocol import Circumstances, ToolContext, ToolError

BUDGET_SHARE: Final = 0.75
"""The part of AMBER_TOOL_RESULT_TOKENS for the page's text: titles and notes take some, and the
model may count more tokens than Amber does (Chinese takes a third more in OpenAI's older
vocabulary). A result over the budget would lose its middle."""
MOST_CHARS_PER_TOKEN: Final = 8
"""More than any text has on average, so no longer piece needs to be counted."""

NOT_OPENED: Final = (
    "This address was not opened, so that nothing can leave through it: the conversation holds text "
    "that strangers wrote, and they may have named it. Only addresses are opened then that the user "
    "typed, that web_search has just returned, or that a page read just now links to on the same "
    "host, exactly as they stand there. Tell the user; they can paste the address into the chat."
)


def _is_offered(circumstances: Circumstances) -> bool:
    return not circumstances.disable_web_browsing


@register_tool(when=_is_offered, idempotent=True, harmless=True, names_addresses=True)
async def web_browse(
    context: ToolContext,
    url: Annotated[str, "Address of the page, beginning with http:// or https://"],
    start: Annotated[int, "Where to begin, in characters, to read on in a long page"] = 0,
) -> str:
    """Reads a page, PDF or Office file of the web as Markdown, with its links."""
    from tools.builtin.web.pages import Page, open_page  # with its HTTP client 4 MB

    page: Page = await open_page(await _address_to_open(url.strip(), context))
    if not 0 <= start < len(page.text):
        raise ToolError(f"The page has {len(page.text):,} characters; begin at 0 or later.")
    piece = await in_thread(cut_piece, page.text, start, budget_tokens())
    head = [f"# {one_line(page.title)}" if page.title else "", page.url, "", piece]
    end = start + len(piece)
    if start or end < len(page.text):
        head += ["", _note(start, end, len(page.text))]
    return "\n".join(head).strip()


async def _address_to_open(url: str, context: ToolContext) -> str:
    """Return the address as the turn may open it. Raises ToolError for one that it may not."""
    if not context.must_guard:
        return url
    known = await in_thread(known_address, url, exposure=context.exposure)
    if known is None:
        raise ToolError(NOT_OPENED)
    return known


def budget_tokens() -> int:
    return int(settings.AMBER_TOOL_RESULT_TOKENS * BUDGET_SHARE)


def cut_piece(text: str, start: int, limit_tokens: int) -> str:
    """Return as much text from `start` as fits, at least one character.

    It ends with a line if one ends near. Costs two or three counts of about `limit_tokens`.
    """
    most_chars = limit_tokens * MOST_CHARS_PER_TOKEN
    piece = text[start : start + most_chars]
    while at_most_tokens(piece) > limit_tokens and (tokens := count_text(piece)) > limit_tokens:
        piece = piece[: max(1, int(len(piece) * limit_tokens / tokens * 0.98))]
    if start + len(piece) == len(text):
        return piece
    line_end = piece.rfind("\n", len(piece) * 3 // 4) + 1
    return piece[:line_end] if line_end else piece


def _note(start: int, end: int, length: int) -> str:
    shown = f"Characters {start:,} to {end:,} of {length:,}"
    more = f" To read on, call web_browse with start={end}." if end < length else ""
    return f"[{shown}.{more}]"
