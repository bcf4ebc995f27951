"""Ask SearXNG, an operator's own search engine, for JSON.

https://docs.searxng.org/dev/search_api.html; `json` must be among `search.formats` in its
settings, or it answers 403. It cannot be asked for a number of results, so its page is cut.
"""

from typing import Final
from urllib.parse import urlencode

from amber.lib.egress import FetchLimits
from tools.builtin.web.results import SearchRequest, WebResult, read_results
from tools.outgoing.operator_service import ask, json_object
from tools.outgoing.requests import ServiceRequest
from tools.protocol import ToolContext

WHAT: Final = "The web search"
LIMITS: Final = FetchLimits(total_seconds=15, max_bytes=2_000_000)


async def search(base_url: str, request: SearchRequest, *, context: ToolContext) -> list[WebResult]:
    """Search with one request, repeated while the engine is overloaded. Raises ToolError."""
    fields = {"q": request.query, "format": "json"}
    if request.freshness is not None:
        fields["time_range"] = request.freshness
    url = f"{base_url.rstrip('/')}/search?{urlencode(fields)}"
    answer = await ask(
        ServiceRequest("GET", url, headers={"Accept": "application/json"}),
        what=WHAT,
        trusting=base_url,
        context=context,
        idempotent=True,
        limits=LIMITS,
    )
    return read_results(json_object(answer, what=WHAT).get("results"), count=request.count)
