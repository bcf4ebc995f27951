"""Search with an operator's engine: SearXNG of their own, or Tavily, a service for models.

https://docs.searxng.org/dev/search_api.html; `json` must be among `search.formats` in its settings, or it
answers 403. It cannot be asked for a number of results, so its page is cut.
https://docs.tavily.com/documentation/api-reference
"""

from typing import Any, Final
from urllib.parse import urlencode

import orjson

from amber.lib.egress import FetchLimits
from tools.builtin.web.results import SearchRequest, WebResult, read_results
from tools.outgoing.operator_service import ask, json_object
from tools.outgoing.requests import ServiceRequest
from tools.protocol import ToolContext

WHAT: Final = "The web search"
LIMITS: Final = FetchLimits(total_seconds=15, max_bytes=2_000_000)


async def search_searxng(
    base_url: str, request: SearchRequest, *, context: ToolContext
) -> list[WebResult]:
    """Search with one request, repeated while the engine is overloaded. Raises ToolError."""
    fields = {"q": request.query, "format": "json"}
    if request.freshness is not None:
        fields["time_range"] = request.freshness
    url = f"{base_url.rstrip('/')}/search?{urlencode(fields)}"
    asked = ServiceRequest("GET", url, headers={"Accept": "application/json"})
    return await _results(asked, base_url, request, context)


async def search_tavily(
    base_url: str, api_key: str, request: SearchRequest, *, context: ToolContext
) -> list[WebResult]:
    """Search as `search_searxng` does."""
    body: dict[str, Any] = {"query": request.query, "max_results": request.count}
    if request.freshness is not None:
        body["time_range"] = request.freshness
    asked = ServiceRequest(
        "POST",
        f"{base_url.rstrip('/')}/search",
        headers={"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"},
        body=orjson.dumps(body),
        secrets=(api_key,),
    )
    return await _results(asked, base_url, request, context)


async def _results(
    asked: ServiceRequest, base_url: str, request: SearchRequest, context: ToolContext
) -> list[WebResult]:
    answer = await ask(asked, what=WHAT, trusting=base_url, context=context, limits=LIMITS)
    return read_results(json_object(answer, what=WHAT).get("results"), count=request.count)
