"""Write the ledger: one row per call of a provider, inside the caller's transaction.

Counts what was used and what it cost, for the budgets too (`providers.budgets.reservations` holds
them). Tokens are not guessed here: the caller says whether the provider counted them or Amber did.
"""

from decimal import Decimal
from typing import Any

from amber.lib.database.cached_update import insert_row
from engine.provider.model import Usage
from engine.text.tokens import count_text
from providers.budgets import reservations
from providers.budgets.rules import Spending
from providers.budgets.scopes import BudgetSubject
from providers.models import EmbeddingModel, LanguageModel, UsageKind, UsageRecord

_MILLION = Decimal(1_000_000)
_CENTS = Decimal("0.00000001")
"""The last digit that the column keeps."""


def cost_of(row: LanguageModel | EmbeddingModel, usage: Usage) -> Decimal:
    """Return the cost in the currency of the prices. Cached tokens are part of the prompt's."""
    if isinstance(row, EmbeddingModel):
        return (row.price_in * usage.prompt_tokens / _MILLION).quantize(_CENTS)
    price_cached = row.price_in if row.price_cached is None else row.price_cached
    cached_tokens = min(usage.cached_tokens, usage.prompt_tokens)
    millionths = (
        row.price_in * (usage.prompt_tokens - cached_tokens)
        + price_cached * cached_tokens
        + row.price_out * usage.completion_tokens
    )
    return (millionths / _MILLION).quantize(_CENTS)


def record_speech(
    model: str, *, spoken: str = "", written: str = "", outcome: str, **about: Any
) -> UsageRecord:
    """Record a text that was spoken, or that speech was written down as; `about` as in `record`. One INSERT.

    Amber counts the tokens, since providers do not; the cost is 0, since no price is known.
    """
    return _write_record(
        UsageRecord(
            kind=UsageKind.SPEECH,
            model=model,
            prompt_tokens=count_text(spoken),
            completion_tokens=count_text(written),
            estimated=True,
            outcome=outcome,
            **about,
        )
    )


def record(
    row: LanguageModel | EmbeddingModel,
    usage: Usage,
    *,
    estimated: bool = False,
    first_token_ms: int | None = None,
    latency_ms: int = 0,
    outcome: str = "ok",
    is_budgeted: bool = False,
    **about: Any,
) -> UsageRecord:
    """Record a call. One INSERT, and two more queries where budgets apply.

    `about` says whose it is, as a `BudgetSubject` does, and which `turn_id`. `outcome` is as in
    `UsageRecord`, `is_budgeted` as in `reservations.count`.
    """
    kind = UsageKind.EMBEDDING if isinstance(row, EmbeddingModel) else UsageKind.CHAT
    return _write_record(
        UsageRecord(
            kind=kind,
            model=row.alias,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            estimated=estimated,
            cost=cost_of(row, usage),
            first_token_ms=first_token_ms,
            latency_ms=latency_ms,
            outcome=outcome,
            **about,
        ),
        is_budgeted=is_budgeted,
    )


def spending_of(row: LanguageModel | EmbeddingModel, usage: Usage) -> Spending:
    """Return what a call of this model takes from a budget."""
    return Spending(usage.total_tokens, cost_of(row, usage))


def _write_record(record: UsageRecord, *, is_budgeted: bool = False) -> UsageRecord:
    insert_row(record)
    if tokens := record.prompt_tokens + record.completion_tokens:
        spent = Spending(tokens, record.cost)
        reservations.count(BudgetSubject.of(record), spent, is_budgeted=is_budgeted)
    return record
