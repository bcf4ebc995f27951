"""Provide the tool `search_conversation`, which finds what was said in this chat, however long ago.

It searches by words over every message of the path that the turn answers, and by words and meaning
over its sealed blocks. Text of abandoned branches is not found.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from amber.lib.errors import Unavailable
from amber.lib.search.words import tsquery_literal
from chats.context.recall import Recalled, recall
from chats.messages import transcript
from chats.messages.search import best_matches
from chats.models import ChatMessage, Turn
from engine.messages import MessageRole
from engine.provider.model import ProviderError
from libraries.embedding.store import embed_query
from providers.registry import default_embedding_model
from tools.calling.registry import register_tool
from tools.protocol import ToolContext, ToolError

MAX_MESSAGES: Final = 10
_LOOKED_AT: Final = 100
"""Matches that are examined: some may lie on abandoned branches."""

_BLOCK_TOKENS: Final = 2_500
_MESSAGE_CHARS: Final = 1_500
_SPEAKERS: Final = {MessageRole.ASSISTANT: "Assistant"}


@register_tool(when=lambda turn: turn.has_sealed_blocks, idempotent=True, harmless=True)
def search_conversation(
    context: ToolContext,
    query: Annotated[str, "Words that were said, or what was talked about"],
) -> str:
    """Finds what was said earlier in this conversation, with its time. Use it whenever the user
    refers to something that you no longer see."""
    if context.chat_id is None:
        raise ToolError("This conversation has no earlier part.")
    zone = ZoneInfo(context.time_zone)
    turns = Turn.objects.filter(pk=context.turn_id) if context.turn_id else Turn.objects.none()
    tip_id = turns.values_list("tip_id", flat=True).first()
    messages = _search_keywords(context.chat_id, tip_id, query)
    blocks = recall(
        context.chat_id,
        query,
        before_position=2**31 - 1,
        limit_tokens=_BLOCK_TOKENS,
        **_vector_of(query, context),
    ).taken
    if not messages and not blocks:
        return "Nothing of that kind was said in this conversation. Try other words."
    return "\n\n".join(
        filter(None, [_render_messages(messages, zone), _render_blocks(blocks, zone)])
    )


def _search_keywords(chat_id: UUID, tip_id: UUID | None, query: str) -> list[ChatMessage]:
    """Return the best matches on the path to the tip, oldest first."""
    literal = tsquery_literal(query, "any")
    if literal is None:
        return []
    best = list(best_matches(ChatMessage.objects.filter(chat_id=chat_id), literal)[:_LOOKED_AT])
    on_path = transcript.path_ids(chat_id, tip_id)
    found = [message for message in best if message.pk in on_path][:MAX_MESSAGES]
    return sorted(found, key=lambda message: message.position)


def _vector_of(query: str, context: ToolContext) -> dict[str, Any]:
    """Return the query's vector and its model; nothing if the embedder fails, then words must
    do."""
    try:
        model = default_embedding_model()
        vector = embed_query(query, model=model, organization_id=context.organization_id)
    except (ProviderError, Unavailable):
        return {}
    return {"vector": vector, "model_id": model.pk}


def _render_messages(messages: Iterable[ChatMessage], zone: ZoneInfo) -> str:
    lines = [
        f"[{message.created_at.astimezone(zone):%Y-%m-%d %H:%M:%S}] "
        f"{_SPEAKERS.get(MessageRole(message.role), 'User')}: {message.content[:_MESSAGE_CHARS]}"
        for message in messages
    ]
    return "\n".join(["Messages with these words:", *lines]) if lines else ""


def _render_blocks(blocks: Iterable[Recalled], zone: ZoneInfo) -> str:
    parts = [
        f"[{block.from_at.astimezone(zone):%Y-%m-%d %H:%M} to "
        f"{block.until_at.astimezone(zone):%Y-%m-%d %H:%M}]\n{block.content}"
        for block in blocks
    ]
    return "\n".join(["Parts of the conversation about this:", *parts]) if parts else ""
