"""The built-in tool `forget` deletes a fact about the user.

It deletes one memory, and only if it is clear which is meant; otherwise it lists the candidates, so
that the model can ask or name one of them exactly.
"""

from typing import Annotated

from memory.recall.matching import matching
from memory.services import forget_memory
from tools.builtin.remember import owner_in, uses_memory
from tools.calling.registry import register_tool
from tools.protocol import ToolContext, ToolError


@register_tool(when=uses_memory)
def forget(
    context: ToolContext,
    what: Annotated[str, "The fact to forget, as exactly as possible"],
) -> str:
    """Deletes one fact that was remembered about the user, when they ask for it to be forgotten."""
    if not what.strip():
        raise ToolError("Say what to forget.")
    found = matching(owner_in(context), what, assistant_id=context.assistant_id)
    if found.clear is not None:
        forget_memory(found.clear)
        return f"Forgotten: {found.clear.content}"
    if not found.candidates:
        return "Nothing of that kind is remembered."
    listed = "\n".join(f"- {memory.content}" for memory in found.candidates)
    return (
        "Several memories may be meant; nothing was deleted. Call forget again with the exact "
        f"words of one of these, if it is the one:\n{listed}"
    )
