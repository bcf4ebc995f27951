"""Search the texts of messages: `amber.lib.search.words` makes the tokens of texts and queries.

Chinese, C++ and part numbers are found. Only messages of chats that the caller sees are searched: each has
a word of its person in its index, so that a search costs by what that person said, however much others
have. Messages that an older release wrote get it from `chats.digest.message_words`; until all have it, it
is not asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import BooleanField, Case, F, FloatField, Func, Q, QuerySet, Value, When
from django.db.models.expressions import RawSQL

from accounts.principal import Principal
from amber.lib.search.hybrid import pool_word
from amber.lib.search.words import tsquery_literal, tsvector_literal, word_literal
from chats.models import Chat, ChatMessage

WORDS_VERSION: Final = 1
"""What `index_message` writes: 1 has the person's word."""


def person_word(organization_id: UUID, user_id: UUID | None, guest_id: str | None) -> str:
    """Return the word that all messages in one person's, or one guest's, chats have in their index."""
    return pool_word(f"messages:{organization_id.hex}", guest_id or str(user_id))


def index_message(chat: Chat, content: str) -> str:
    """Return the `search` column of a message of this chat."""
    mine = word_literal(person_word(chat.organization_id, chat.user_id, chat.guest_id))
    return f"{tsvector_literal(content)} {mine}"


def move_messages(chat_ids: Sequence[UUID], old: str, new: str) -> None:
    """Let messages of chats that changed hands be found by the new person's word, not the old one's. Call
    it in the transaction that gives the chats away. One statement, which reads no text."""
    indexed = ChatMessage.objects.filter(chat_id__in=chat_ids, search__isnull=False)
    words = RawSQL("ts_delete(search, %s) || array_to_tsvector(ARRAY[%s])", [old, new])
    indexed.update(search=words)


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
    """Return the best matches, best first; none for a query without words. Two queries."""
    literal = tsquery_literal(query)
    if literal is None:
        return []
    person = person_word(principal.organization_id, principal.user_id, principal.guest_id)
    matching = _matching(principal, literal, word_literal(person))
    if chat_id is not None:
        matching = matching.filter(chat_id=chat_id)
    scores = dict(matching.values_list("pk", "score")[:limit])
    rows = ChatMessage.objects.select_related("chat", "assistant", "file").defer("search")
    found = rows.in_bulk(scores)
    return [MessageHit(found[pk], score) for pk, score in scores.items() if pk in found]


def _matching(principal: Principal, literal: str, person: str) -> QuerySet[Any]:
    """Return the person's messages that match the tsquery, best first, each with its `score`.

    As a CASE the condition on the chat is looked up for each match among the person's chats, read once. As
    `visible_to` has it, Postgres joins matches and chats before it looks at messages: 50 chats with 1,137
    matches took 350,000 pages.
    """
    found = RawSQL("SELECT id FROM amber_messages_of(%s::tsquery, %s::tsquery)", [literal, person])
    in_sight = Q(chat__in=Chat.objects.visible_to(principal))
    if principal.guest_id is not None:
        in_sight &= Q(hidden=False)
    is_seen = Case(When(in_sight, then=True), default=False, output_field=BooleanField())
    matching = ChatMessage.objects.filter(is_seen, pk__in=found)
    ranked = matching.annotate(score=_Rank(F("search"), _Query(Value(literal))))
    best: QuerySet[Any] = ranked.order_by("-score", "-created_at")
    return best
