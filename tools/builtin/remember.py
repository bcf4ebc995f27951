"""The built-in tool `remember` keeps a fact about the user for later conversations.

It is offered to turns that use memory. A fact that makes a known one untrue replaces it; what is
already known is not stored twice. It does not guess: the model says what a fact replaces, or it
follows from the words alone.
"""

from typing import Annotated
from uuid import UUID

from amber.lib.errors import Invalid
from memory.facts.facts import Fact, RememberResult
from memory.owner import Owner
from memory.recall.embedding import embedded_or_none
from memory.recall.matching import matching
from memory.services import add_memory
from tools.calling.registry import register_tool
from tools.protocol import Circumstances, ToolContext, ToolError


def uses_memory(circumstances: Circumstances) -> bool:
    return not circumstances.disable_memory


def owner_in(context: ToolContext) -> Owner:
    """Return the person or guest whose memories these are. Raises ToolError if there is nobody."""
    owner = Owner.asking(context.organization_id, context.user_id, context.guest_id)
    if owner.user_id is None and owner.guest_id is None:
        raise ToolError("Nobody is known to be asking, so nothing can be remembered.")
    return owner


@register_tool(when=uses_memory)
def remember(
    context: ToolContext,
    content: Annotated[
        str, "One short sentence about the user that is clear without this conversation"
    ],
    replaces: Annotated[
        str, "In words: what was known before and is no longer true, if this takes its place"
    ] = "",
) -> str:
    """Keeps a lasting fact about the user. Use it when they ask you to remember something, or
    correct what you know of them. Never for passwords or other secrets."""
    owner = owner_in(context)
    embedded = embedded_or_none(content, owner=owner)
    evidence = [context.question_id] if context.question_id else []
    fact = Fact(content, evidence, told_to=context.assistant_id)
    try:
        memory, outcome = add_memory(
            owner, fact, embedded=embedded, replaces=_find_named(context, owner, replaces)
        )
    except Invalid as error:
        raise ToolError("; ".join(said for each in (error.fields or {}).values() for said in each))
    if outcome is RememberResult.KNOWN:
        return f"This was known already: {memory.content}"
    if outcome is RememberResult.SUPERSEDED:
        return f"Remembered, in place of what was known before: {memory.content}"
    return f"Remembered: {memory.content}"


def _find_named(context: ToolContext, owner: Owner, words: str) -> UUID | None:
    """Return the memory that is meant, or None if that is not clear."""
    if not words.strip():
        return None
    found = matching(owner, words, assistant_id=context.assistant_id)
    return found.clear.pk if found.clear is not None else None
