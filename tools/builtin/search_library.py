"""The built-in tool `search_library`: passages of the documents that the assistant's library holds.

Offered with a library. What was found for the question is already before the model; this is for
looking further, in other words. Its passages are numbered on from those, and cited like them. Searches
only the libraries that the turn was allowed.
"""

from typing import Annotated, Final

from engine.history.prompt import LIBRARY_EMPTY_PROMPT, render_passages
from libraries.models import Library
from tools.calling.registry import register_tool
from tools.protocol import Circumstances, ToolContext, ToolError, ToolOutput

MAX_PASSAGES: Final = 10
"""Of up to 1,600 tokens each; usually a quarter of that, so that ten fit a result."""
MAX_QUERY_CHARS: Final = 2_000


def _is_offered(circumstances: Circumstances) -> bool:
    return circumstances.has_library


@register_tool(when=_is_offered, idempotent=True)
def search_library(
    context: ToolContext,
    query: Annotated[str, "What to look for: a question, or words that the passage would use"],
    count: Annotated[int, f"How many passages, 1 to {MAX_PASSAGES}"] = 5,
) -> ToolOutput:
    """Finds passages in the library's documents, by words and by meaning, best first. Cite those
    that you rely on by their numbers, like [3]."""
    from libraries.retrieval.passages import passage_wire
    from libraries.retrieval.search import search  # with its HTTP client 4 MB

    query = query.strip()
    if not query or len(query) > MAX_QUERY_CHARS:
        raise ToolError(
            f"A query has 1 to {MAX_QUERY_CHARS:,} characters, this has {len(query):,}."
        )
    libraries = Library.objects.filter(
        pk__in=context.library_ids, organization_id=context.organization_id
    ).select_related("embedding_model__provider")
    found = search(
        list(libraries), query, k=min(max(count, 1), MAX_PASSAGES), user_id=context.user_id
    )
    passages = context.citable.number(map(passage_wire, found.relevant))
    text = render_passages(passages) or f"{LIBRARY_EMPTY_PROMPT} Other words may find something."
    return ToolOutput(text, passages=tuple(passages))
