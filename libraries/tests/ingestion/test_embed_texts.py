"""Vectors are paid for once, by their own organization, and every call is in the ledger."""

import threading
from typing import Any

import numpy as np
import pytest
from django.db import connections

from engine.provider.embedding import MAX_BATCH_TEXTS
from engine.provider.model import ProviderError
from libraries.embedding.store import embed_query, embed_texts
from libraries.models import Embedding
from libraries.tests.ledger import new_model
from providers.models import UsageRecord
from tests.fixtures.provider import RunningProvider, fake_provider

__all__ = ["fake_provider"]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def without_patience(settings):
    settings.AMBER_PROVIDER_RETRIES = 0


@pytest.fixture
def model(fake_provider):
    return model_of(fake_provider)


def model_of(provider: RunningProvider, upstream_id: str = "fake-embedding", **fields: Any) -> Any:
    return new_model(upstream_id, base_url=provider.base_url, **fields)


def asked_for(provider: RunningProvider, text: str) -> int:
    """How often the provider was sent this text."""
    return sum(body["input"].count(text) for body in provider.requests(text))


def test_vectors_come_in_the_order_of_the_texts(alice, model):
    texts = [f"order {n % 40}" for n in range(300)]
    vectors = embed_texts(texts, model=model, organization_id=alice.organization.pk)
    assert vectors.shape == (300, 64)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    again = embed_texts(texts[::-1], model=model, organization_id=alice.organization.pk)
    assert np.allclose(again[::-1], vectors, atol=1e-3)
    assert np.allclose(vectors[0], vectors[40])
    assert not np.allclose(vectors[0], vectors[1], atol=0.1)


def test_a_text_is_paid_for_once(alice, model, fake_provider):
    for texts in (["once a", "once b"], ["once b", "once c", "once a", "once c"]):
        embed_texts(texts, model=model, organization_id=alice.organization.pk)
    assert [asked_for(fake_provider, text) for text in ("once a", "once b", "once c")] == [1, 1, 1]
    assert Embedding.objects.count() == 3


def test_organizations_and_models_share_nothing(alice, mallory, model, fake_provider):
    other = model_of(fake_provider)
    for who, which in ((alice, model), (mallory, model), (alice, other)):
        embed_texts(["shared text"], model=which, organization_id=who.organization.pk)
    assert asked_for(fake_provider, "shared text") == 3
    assert Embedding.objects.count() == 3


def test_every_call_is_in_the_ledger(alice, model):
    model.price_in = 2
    organization_id = alice.organization.pk
    texts = [f"ledger {n}" for n in range(MAX_BATCH_TEXTS + 1)]
    embed_texts(texts, model=model, organization_id=organization_id, user_id=alice.user.pk)
    first, second = UsageRecord.objects.order_by("-prompt_tokens")
    assert first.kind == second.kind == "embedding"
    assert (first.model, first.user_id) == (model.alias, alice.user.pk)
    assert first.organization_id == organization_id
    assert first.prompt_tokens > second.prompt_tokens > 0
    assert (first.outcome, first.estimated) == ("ok", False)
    assert first.cost > 0


@pytest.mark.parametrize(
    ("upstream_id", "code"),
    [
        ("fake-429", "provider_rate_limited"),
        ("fake-401", "provider_auth"),
        ("fake-500", "provider_unavailable"),
        ("fake-malformed-first", "provider_malformed"),
    ],
)
def test_what_a_provider_does_wrong_is_told_and_accounted(alice, fake_provider, upstream_id, code):
    model = model_of(fake_provider, upstream_id)
    with pytest.raises(ProviderError) as raised:
        embed_texts(["wrong"], model=model, organization_id=alice.organization.pk)
    assert raised.value.code == code
    assert UsageRecord.objects.get().outcome == code
    assert not Embedding.objects.exists()


def test_vectors_of_another_size_are_refused(alice, fake_provider):
    model = model_of(fake_provider, "fake-no-dimensions", dimensions=7)
    with pytest.raises(ProviderError) as raised:
        embed_texts(["size"], model=model, organization_id=alice.organization.pk)
    assert raised.value.code == "provider_malformed"


def test_what_came_before_a_failure_is_kept(alice, model, fake_provider, settings):
    settings.AMBER_EMBEDDING_CONCURRENCY = 1
    kept = [f"kept {n}" for n in range(MAX_BATCH_TEXTS)]
    model.upstream_id = "fake-embedding"
    embed_texts(kept, model=model, organization_id=alice.organization.pk)
    model.upstream_id = "fake-500"
    with pytest.raises(ProviderError):
        embed_texts([*kept, "lost"], model=model, organization_id=alice.organization.pk)
    model.upstream_id = "fake-embedding"
    embed_texts([*kept, "lost"], model=model, organization_id=alice.organization.pk)
    assert [asked_for(fake_provider, text) for text in ("kept 0", "lost")] == [1, 2]


def test_no_texts_cost_nothing(alice, model):
    assert embed_texts([], model=model, organization_id=alice.organization.pk).shape == (0, 64)
    assert not UsageRecord.objects.exists()


def test_the_built_in_embedder_is_not_kept(alice):
    model = new_model()
    vectors = embed_texts(["valve", "valve"], model=model, organization_id=alice.organization.pk)
    assert np.allclose(vectors[0], vectors[1])
    assert not Embedding.objects.exists()
    assert not UsageRecord.objects.exists()


def test_a_question_is_accounted_but_not_kept(alice, model):
    vector = embed_query("why?", model=model, organization_id=alice.organization.pk)
    assert vector.shape == (64,)
    assert UsageRecord.objects.get().outcome == "ok"
    assert not Embedding.objects.exists()


def test_a_question_does_not_wait_for_a_silent_provider(alice, fake_provider):
    model = model_of(fake_provider, "fake-hang-first")
    organization_id = alice.organization.pk
    with pytest.raises(ProviderError) as raised:
        embed_query("why?", model=model, organization_id=organization_id, timeout_seconds=0.05)
    assert raised.value.code == "provider_timeout"


@pytest.mark.django_db(transaction=True)
def test_two_that_buy_the_same_text_at_once_agree(alice, model):
    """One vector is kept, and neither is refused."""
    got: list[Any] = []

    def buy() -> None:
        try:
            got.append(embed_texts(["twice"], model=model, organization_id=alice.organization.pk))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=buy) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 4
    assert all(np.allclose(each, got[0], atol=1e-3) for each in got)
    assert Embedding.objects.count() == 1
