"""The built-in tool `remember` keeps a fact about the user for later conversations.

It is offered to turns that use memory. A fact that makes a known one untrue replaces it; what is
already known is not stored twice. It does not guess: the model says what a fact replaces, or it
follows from the words alone. It keeps only what the user said in their own words, whoever has the
model call it.
"""

from typing import Annotated, Final
from uuid import UUID

from amber.lib.errors import Invalid
from memory.facts.facts import Fact, RememberResult
from memory.facts.own_words import is_in_own_words
from memory.owner import Owner
from memory.recall.embedding import embedded_or_none
from memory.recall.matching import matching
from memory.services import add_memory
from tools.calling.registry import register_tool
from tools.protocol import Circumstances, ToolContext, ToolError

NOT_SAID: Final = (
    "Nothing was kept: only what the user has said is remembered, in their own words and with their "
    "numbers. If they want this to be remembered, they can say so themselves."
)


def uses_memory(circumstances: Circumstances) -> bool:
    return not circumstances.disable_memory


def owner_in(context: ToolContext) -> Owner:
    """Return the person or guest whose memories these are. Raises ToolError if there is nobody."""
    owner = Owner.asking(context.organization_id, context.user_id, context.guest_id)
    if owner.user_id is None and owner.guest_id is None:
        raise ToolError("Nothing can be remembered, because it is not known who is asking.")
    return owner


@register_tool(when=uses_memory, harmless=True)
def remember(
    context: ToolContext,
    content: Annotated[
        str, "One short sentence about the user, clear by itself, in the words that they used"
    ],
    replaces: Annotated[
        str, "In words: what was known before and is no longer true, if this takes its place"
    ] = "",
) -> str:
    """Keeps a lasting fact about the user. Use it when they ask you to remember something, or
    correct what you know of them. Never for passwords or other secrets."""
    owner = owner_in(context)
    if not is_in_own_words(content, context.exposure.typed):
        raise ToolError(NOT_SAID)
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
        return f"This is already remembered: {memory.content}"
    if outcome is RememberResult.SUPERSEDED:
        return f"Remembered, in place of what was known before: {memory.content}"
    return f"Remembered: {memory.content}"


def _find_named(context: ToolContext, owner: Owner, words: str) -> UUID | None:
    """Return the memory that is meant, or None if that is not clear, or if a stranger may mean it."""
    is_meant = not context.must_guard or is_in_own_words(words, context.exposure.typed)
    if not words.strip() or not is_meant:
        return None
    found = matching(owner, words, assistant_id=context.assistant_id)
    return found.clear.pk if found.clear is not None else None
