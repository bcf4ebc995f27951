"""Full-text search over messages: `amber.lib.words` on both sides, GIN in between.

Chinese, C++ and part numbers are found. Only messages of chats the caller sees.
"""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, FloatField, Func, Value

from accounts.principal import Principal
from amber.lib.words import tsquery_literal
from chats.models import ChatMessage


class _Rank(Func):
    """ts_rank_cd over our own tokens; 32 maps it into 0..1."""

    function = "ts_rank_cd"
    template = "%(function)s(%(expressions)s, 32)"
    output_field = FloatField()


class _Query(Func):
    template = "(%(expressions)s)::tsquery"


@dataclass(frozen=True, slots=True)
class Hit:
    """`score` is between 0 and 1."""

    message: ChatMessage
    score: float


def search_messages(
    principal: Principal, query: str, *, chat_id: UUID | None = None, limit: int
) -> list[Hit]:
    """The best matches, best first. Nothing for a query of no words. One query."""
    literal = tsquery_literal(query)
    if literal is None:
        return []
    rows = ChatMessage.objects.visible_to(principal).filter(search__matches=literal)
    if chat_id is not None:
        rows = rows.filter(chat_id=chat_id)
    ranked = rows.annotate(score=_Rank(F("search"), _Query(Value(literal))))
    best = ranked.defer("search").select_related("chat", "assistant", "file")
    found = best.order_by("-score", "-created_at")[:limit]
    return [Hit(message, message.score) for message in found]
