"""The built-in tool `search_library` finds passages in the documents of the assistant's library.

It is offered with a library. The model already has what was found for the question; this tool lets
it search again in other words. The numbers of its passages continue from those, and they are cited
alike. It searches only the libraries that the turn may use.
"""

from typing import Annotated, Final

from amber.lib.database.tenant import for_whole_organization
from engine.history.prompt import LIBRARY_EMPTY_PROMPT, render_passages
from libraries.models import Library
from tools.calling.registry import register_tool
from tools.protocol import Circumstances, ToolContext, ToolError, ToolOutput

MAX_PASSAGES: Final = 10
"""A passage has up to 1,600 tokens, usually a quarter of that, so ten fit into a result."""
MAX_QUERY_CHARS: Final = 2_000
EMBEDDING_SECONDS: Final = 5.0
"""A call of a tool can wait longer for a vector than the beginning of an answer."""


def _is_offered(circumstances: Circumstances) -> bool:
    return circumstances.has_library


@register_tool(when=_is_offered, idempotent=True, harmless=True)
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
    rows = Library.objects.filter(
        pk__in=context.library_ids, organization_id=context.organization_id
    ).select_related("embedding_model__provider")
    with for_whole_organization():  # also one that only the assistant's creator sees
        libraries = list(rows)
    found = search(
        libraries,
        query,
        k=min(max(count, 1), MAX_PASSAGES),
        user_id=context.user_id,
        query_seconds=EMBEDDING_SECONDS,
    )
    passages = context.citable.number(map(passage_wire, found.relevant))
    text = render_passages(passages) or f"{LIBRARY_EMPTY_PROMPT} Other words may find something."
    return ToolOutput(text, passages=tuple(passages))
