"""Search the texts of messages: `amber.lib.search.words` makes the tokens of texts and queries.

Chinese, C++ and part numbers are found. Only messages of chats that the caller sees are searched.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import F, FloatField, Func, QuerySet, Value
from django.db.models.expressions import RawSQL

from accounts.principal import Principal
from amber.lib.search.words import tsquery_literal
from chats.models import ChatMessage


class _Rank(Func):
    """ts_rank_cd over our own tokens; 32 maps it into 0..1."""

    function = "ts_rank_cd"
    template = "%(function)s(%(expressions)s, 32)"
    output_field = FloatField()


class _Query(Func):
    template = "(%(expressions)s)::tsquery"


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message that matches; `score` is between 0 and 1."""

    message: ChatMessage
    score: float


def search_messages(
    principal: Principal, query: str, *, chat_id: UUID | None = None, limit: int
) -> list[MessageHit]:
    """Return the best matches, best first; none for a query without words. One query."""
    literal = tsquery_literal(query)
    if literal is None:
        return []
    rows = ChatMessage.objects.visible_to(principal)
    if chat_id is not None:
        rows = rows.filter(chat_id=chat_id)
    best = best_matches(rows, literal).select_related("chat", "assistant", "file")
    return [MessageHit(message, message.score) for message in best[:limit]]


def best_matches(rows: QuerySet[Any], literal: str) -> QuerySet[Any]:
    """Return the rows that match the tsquery, best first, each with its `score`."""
    found = RawSQL("SELECT id FROM amber_messages_with(%s::tsquery)", [literal])
    matching = rows.filter(pk__in=found)
    ranked = matching.annotate(score=_Rank(F("search"), _Query(Value(literal))))
    best: QuerySet[Any] = ranked.defer("search").order_by("-score", "-created_at")
    return best
