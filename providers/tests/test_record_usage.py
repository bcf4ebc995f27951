from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from engine.provider.model import Usage
from providers.models import EmbeddingModel, LanguageModel, UsageRecord
from providers.usage import ledger


def priced(**fields: Decimal | None) -> LanguageModel:
    prices: dict[str, Any] = {
        "price_in": Decimal(2),
        "price_out": Decimal(8),
        "price_cached": Decimal("0.5"),
    }
    return LanguageModel(alias="m", **(prices | fields))


@pytest.mark.parametrize(
    ("model", "usage", "cost"),
    [
        (priced(), Usage(1_000_000, 0), "2"),
        (priced(), Usage(0, 1_000_000), "8"),
        (priced(), Usage(1_000_000, 0, 1_000_000), "0.5"),
        (priced(), Usage(1_000, 100, 400), "0.0022"),
        (priced(price_cached=None), Usage(1_000_000, 0, 400_000), "2"),
        (priced(price_cached=Decimal(0)), Usage(1_000_000, 0, 400_000), "1.2"),
        (priced(), Usage(10, 0, 1_000), "0.000005"),  # more cached than sent: a provider's slip
        (LanguageModel(alias="free"), Usage(1_000, 1_000), "0"),
        (EmbeddingModel(alias="e", price_in=Decimal("0.02")), Usage(500_000), "0.01"),
    ],
)
def test_costs_what_the_prices_say(model, usage, cost):
    assert ledger.cost_of(model, usage) == Decimal(cost)


tokens = st.integers(min_value=0, max_value=2**31)


@given(prompt=tokens, completion=tokens, cached=tokens)
def test_never_costs_less_than_nothing_nor_more_than_uncached(prompt, completion, cached):
    cost = ledger.cost_of(priced(), Usage(prompt, completion, cached))
    assert 0 <= cost <= ledger.cost_of(priced(), Usage(prompt, completion))


def test_keeps_who_what_and_how_it_went(alice, new_model, django_assert_num_queries):
    model = new_model("m", price_in=Decimal(1))
    ids: dict[str, Any] = {n: uuid4() for n in ("api_key_id", "assistant_id", "turn_id")}
    ledger.record(new_model("other"), Usage(1, 1), organization_id=alice.organization.pk)
    with django_assert_num_queries(1):  # no budget applies, and that is known by now
        ledger.record(
            model,
            Usage(1_000_000, 5, 2),
            organization_id=alice.organization.pk,
            user_id=alice.user.pk,
            guest_id="guest-1",
            estimated=True,
            first_token_ms=12,
            latency_ms=345,
            outcome="cancelled",
            **ids,
        )
    row = UsageRecord.objects.get(model="m")
    assert (row.organization, row.user, row.guest_id) == (alice.organization, alice.user, "guest-1")
    assert {name: getattr(row, name) for name in ids} == ids
    assert (row.kind, row.model, row.outcome) == ("chat", "m", "cancelled")
    assert (row.prompt_tokens, row.completion_tokens, row.cached_tokens) == (1_000_000, 5, 2)
    assert (row.estimated, row.first_token_ms, row.latency_ms) == (True, 12, 345)
    assert row.cost == 1


def test_embeddings_are_marked_as_such(alice, new_embedding_model):
    model = new_embedding_model("e")
    row = ledger.record(model, Usage(7), organization_id=alice.organization.pk)
    assert (row.kind, row.model) == ("embedding", "e")


@pytest.mark.django_db(transaction=True)
def test_is_part_of_the_callers_transaction(alice, new_model):
    model = new_model("m")
    with pytest.raises(RuntimeError), transaction.atomic():
        ledger.record(model, Usage(1, 1), organization_id=alice.organization.pk)
        raise RuntimeError
    assert not UsageRecord.objects.exists()
