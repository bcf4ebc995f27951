"""The built-in tool `web_search` asks the operator's search engine.

It is offered when one is configured (AMBER_SEARXNG_URL, else AMBER_TAVILY_API_KEY), unless the
assistant disables web browsing. Its prompt opens the system prompt of turns that are offered it.
It opens none of the pages that it finds. A query goes to the operator's engine, whatever the turn has
read; that is whom the operator trusts with it (docs/tools.md).
"""

from typing import Annotated, Final, Literal

from django.conf import settings

from engine.history.prompt import WEB_SEARCH_PROMPT
from tools.builtin.web.results import MAX_RESULTS, SearchRequest, WebResult, render_results
from tools.calling.registry import register_tool
from tools.protocol import Circumstances, ToolContext, ToolError

MAX_QUERY_CHARS: Final = 400
"""The most that Tavily takes."""


def _is_offered(circumstances: Circumstances) -> bool:
    configured = settings.AMBER_SEARXNG_URL or settings.AMBER_TAVILY_API_KEY
    return bool(configured) and not circumstances.disable_web_browsing


@register_tool(
    when=_is_offered, idempotent=True, harmless=True, names_addresses=True, prompt=WEB_SEARCH_PROMPT
)
async def web_search(
    context: ToolContext,
    query: Annotated[str, "What to search for, as typed into a search engine"],
    count: Annotated[int, f"How many results, 1 to {MAX_RESULTS}"] = 5,
    freshness: Annotated[
        Literal["any", "day", "week", "month", "year"], "How old the results may be at most"
    ] = "any",
) -> str:
    """Searches the web and lists what it finds: title, address, excerpt."""
    query = query.strip()
    if not query or len(query) > MAX_QUERY_CHARS:
        raise ToolError(f"A query has 1 to {MAX_QUERY_CHARS} characters, this has {len(query)}.")
    request = SearchRequest(
        query,
        count=min(max(count, 1), MAX_RESULTS),
        freshness=None if freshness == "any" else freshness,
    )
    results = await _search(request, context)
    if not results:
        return "Nothing was found. Other or fewer words may help."
    return render_results(results)


async def _search(request: SearchRequest, context: ToolContext) -> list[WebResult]:
    from tools.builtin.web import engines  # with its HTTP client 4 MB

    if settings.AMBER_SEARXNG_URL:
        return await engines.search_searxng(settings.AMBER_SEARXNG_URL, request, context=context)
    return await engines.search_tavily(
        settings.AMBER_TAVILY_URL, settings.AMBER_TAVILY_API_KEY, request, context=context
    )
