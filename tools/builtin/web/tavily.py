"""Ask Tavily, a search service for models (https://docs.tavily.com/documentation/api-reference)."""

from typing import Any, Final

import orjson

from amber.lib.egress import FetchLimits
from tools.builtin.web.results import SearchRequest, WebResult, read_results
from tools.outgoing.operator_service import ask, json_object
from tools.outgoing.requests import ServiceRequest
from tools.protocol import ToolContext

WHAT: Final = "The web search"
LIMITS: Final = FetchLimits(total_seconds=15, max_bytes=2_000_000)


async def search(
    base_url: str, api_key: str, request: SearchRequest, *, context: ToolContext
) -> list[WebResult]:
    """Search with one request, repeated while the service is overloaded. Raises ToolError."""
    body: dict[str, Any] = {"query": request.query, "max_results": request.count}
    if request.freshness is not None:
        body["time_range"] = request.freshness
    headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
    answer = await ask(
        ServiceRequest(
            "POST",
            f"{base_url.rstrip('/')}/search",
            headers=headers,
            body=orjson.dumps(body),
            secrets=(api_key,),
        ),
        what=WHAT,
        trusting=base_url,
        context=context,
        idempotent=True,
        limits=LIMITS,
    )
    return read_results(json_object(answer, what=WHAT).get("results"), count=request.count)
