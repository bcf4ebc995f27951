"""Admit turns: reserve what a turn may cost before its row is written, or refuse the turn.

    admit(turn)             reserves for its first request, writes it, and enqueues it after commit:
                            all that start turns call it
    readmit(turn)           reserves again for a turn that waited for a person
    renew(turn, …)          reserves for its next request, when a reply asked for tools
    release_budgets(turns)  gives back what is still reserved: the turns are over, or wait

Reserved are the prompt, as estimated here without counting tokens, and the longest reply allowed,
at the model's price. What calls really used is counted by the ledger (`providers.usage.ledger`).
Turns to which no budget applies cost no query.
"""

from collections.abc import Collection
from datetime import timedelta
from functools import partial
from typing import Final

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Func, IntegerField, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from amber.lib.database.cached_update import insert_row
from amber.lib.errors import RateLimited
from amber.lib.tracing import spans
from chats.models import ChatMessage, Turn
from chats.queue import enqueue_turn
from chats.turns.congestion import refuse_over_share
from engine.messages import MessageRole
from engine.provider.model import Usage
from engine.text.tokens import SAFE_BYTES_PER_TOKEN, estimate_tokens
from providers import registry
from providers.budgets import reservations
from providers.budgets.rules import Spending
from providers.budgets.scopes import BudgetSubject
from providers.models import LanguageModel
from providers.usage.ledger import spending_of

_BATCH: Final = 500
_SENT_OPTIONS: Final = ("prompts", "tools", "response_format")


def _octets(column: str) -> Func:
    return Func(F(column), function="octet_length", output_field=IntegerField())


_OCTETS: Final = _octets("content")
_FILE_OCTETS: Final = _octets("file__text")
_IS_SENT: Final = Q(role=MessageRole.FILE, tool_call__isnull=True)
"""The model reads files that people sent; of files that tool calls made it reads only the name."""


def admit(turn: Turn) -> Turn:
    """Write a new turn and enqueue it after commit, or raise RateLimited (budget_exceeded, queue_full).

    Part of the caller's transaction: a worker would not find the row before its commit.
    """
    refuse_over_share(turn)
    turn.is_budgeted = reservations.reserve(
        BudgetSubject.of(turn), partial(_estimate_first, turn), holder_id=turn.pk
    )
    turn.trace_parent = spans.trace_parent()
    insert_row(turn)
    transaction.on_commit(partial(enqueue_turn, turn.pk))
    return turn


def readmit(turn: Turn) -> None:
    """Reserve for a turn that waited: its next request reads what the last one did, and more.

    Budgets made while it waited apply, too. The caller saves `is_budgeted`. Raises RateLimited.
    """

    def estimate_spending() -> Spending:
        return _estimate_spending(turn, _model_of(turn), turn.usage.get("total_tokens", 0))

    turn.is_budgeted = reservations.reserve(
        BudgetSubject.of(turn), estimate_spending, holder_id=turn.pk
    )


def renew(turn: Turn, model: LanguageModel, last: Usage) -> RateLimited | None:
    """Reserve what the next request may use. Return the error if no budget affords it."""
    if not turn.is_budgeted:
        return None
    estimate_spending = _estimate_spending(turn, model, last.total_tokens)
    return reservations.renew(BudgetSubject.of(turn), estimate_spending, holder_id=turn.pk)


def release_budgets(turns: Collection[Turn]) -> None:
    """Give back what is still reserved for these turns. No query if no budget applied."""
    if held := [turn.pk for turn in turns if turn.is_budgeted]:
        reservations.release(held)


def release_leftovers() -> None:
    """Give back what is still reserved for turns that are over or deleted: a periodic job."""
    # What is younger may be held for a call that is no turn, and goes on (learning, embeddings).
    old = timezone.now() - timedelta(seconds=settings.AMBER_TURN_SECONDS)
    holders = reservations.holders_since(old, at_most=_BATCH)
    live = set(Turn.objects.live().filter(pk__in=holders).values_list("pk", flat=True))
    if gone := [pk for pk in holders if pk not in live]:
        reservations.release(gone)


def prompt_tokens_of(turn: Turn) -> int:
    """Estimate the prompt of its next request, without counting tokens. Up to three queries."""
    said = _stateless_tokens(turn) if turn.chat_id is None else _chat_tokens(turn)
    return said + _options_tokens(turn)


# -- What a request may use -----------------------------------------------------------------------


def _estimate_first(turn: Turn) -> Spending:
    """Estimate its first request. Up to four queries."""
    return _estimate_spending(turn, _model_of(turn), prompt_tokens_of(turn))


def _estimate_spending(turn: Turn, model: LanguageModel, prompt_tokens: int) -> Spending:
    wished = turn.options.get("max_output_tokens") or model.max_output_tokens
    prompt_tokens = min(prompt_tokens, model.context_tokens)
    return spending_of(model, Usage(prompt_tokens, min(wished, model.max_output_tokens)))


def _model_of(turn: Turn) -> LanguageModel:
    """Return the model that will answer. One query. Raises Unavailable."""
    named = turn.assistant.model if turn.assistant else turn.options.get("model", "")
    return registry.resolve(named, wants_vision=False).row


def _chat_tokens(turn: Turn) -> int:
    """Estimate a chat's prompt: its last request with the answer, and what came since.

    Two queries.
    """
    # Of all branches: an estimate is not worth a walk along the path.
    messages = ChatMessage.objects.filter(chat=turn.chat)
    answers = messages.filter(role=MessageRole.ASSISTANT, total_tokens__gt=0)
    last = answers.order_by("-position").values_list("position", "total_tokens").first()
    position, before = last or (-1, _opening_tokens(turn))
    said = messages.filter(position__gt=position).aggregate(
        bytes=Coalesce(Sum(_OCTETS), 0) + Coalesce(Sum(_FILE_OCTETS, filter=_IS_SENT), 0),
        images=Count("pk", filter=_IS_SENT & Q(file__mime_type__startswith="image/")),
    )
    images = int(said["images"]) * settings.AMBER_IMAGE_TOKENS
    return before + images + int(said["bytes"]) // SAFE_BYTES_PER_TOKEN + 1


def _options_tokens(turn: Turn) -> int:
    """Estimate what the caller adds to the conversation, and the model reads with every request."""
    sent = [turn.options[name] for name in _SENT_OPTIONS if turn.options.get(name)]
    return len(orjson.dumps(sent)) // SAFE_BYTES_PER_TOKEN if sent else 0


def _stateless_tokens(turn: Turn) -> int:
    said = (turn.input or {}).get("messages", [])
    images = sum("file_id" in message for message in said) * settings.AMBER_IMAGE_TOKENS
    texts = (message.get("content") or "" for message in said)
    return _opening_tokens(turn) + images + sum(map(estimate_tokens, texts))


def _opening_tokens(turn: Turn) -> int:
    """Estimate the prompts of a conversation that only begins, and its library's passages."""
    if turn.assistant is None:
        return 0
    prompt = (turn.chat.prompt if turn.chat else None) or turn.assistant.prompt
    passages = settings.AMBER_PASSAGE_TOKENS if turn.assistant.library_id else 0
    return estimate_tokens(prompt) + passages
