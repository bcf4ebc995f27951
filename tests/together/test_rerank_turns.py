"""The operator's reranker in a turn: it says which memories and which earlier messages come first."""

from collections.abc import Iterator
from typing import Any

import pytest

from amber.lib.database.tenant import Tenant, as_tenant
from chats.context.block_search import PathSearch
from chats.context.recall import recall as recall_talk
from chats.digest.blocks import seal
from chats.tests.rows import converse, new_assistant, new_chat
from engine.text import tokens
from memory.facts.facts import Fact, remember
from memory.owner import Owner
from memory.recall.recall import recall as recall_memories
from providers.models import OFFLINE_URL, EmbeddingModel, Provider
from tests.fakes.reranker import FakeReranker, by_length
from tests.fixtures.tenants import for_organization

pytestmark = pytest.mark.django_db

LONG = "my dentist is Dr. Meyer, whose practice is behind the old town hall"
SHORT = "my dentist closes on Fridays"
QUESTION = "When can I see my dentist?"


@pytest.fixture
def service(settings: Any) -> Iterator[FakeReranker]:
    """One that puts shorter texts first."""
    with FakeReranker() as running:
        settings.AMBER_RERANK_URL = running.url
        settings.AMBER_RERANK_TURN_SECONDS = 2.0
        yield running


def test_it_chooses_the_memories_that_fit(alice, service, settings):
    owner = Owner.of(alice.principal)
    for content in (SHORT, LONG):
        remember(owner, Fact(content))
    limit_tokens = max(map(tokens.count_text, (SHORT, LONG)))
    with as_tenant(Tenant(owner.organization_id, owner.user_id)):
        recalled = recall_memories(owner, QUESTION, limit_tokens=limit_tokens, may_rerank=True)
        assert [memory.content for memory in recalled] == [SHORT]
        service.answer = by_length_of_the_longest
        recalled = recall_memories(owner, QUESTION, limit_tokens=limit_tokens, may_rerank=True)
        assert [memory.content for memory in recalled] == [LONG]
        service.asked.clear()
        recall_memories(owner, QUESTION, limit_tokens=limit_tokens)
    assert service.asked == []


def test_it_chooses_the_messages_that_fit(alice, service, settings, offline_embedder):
    settings.AMBER_BLOCK_TOKENS = 20
    chat = new_chat(alice, assistant=new_assistant(alice))
    said = [f"We saw the heron {place}." for place in ("at the pond behind the mill", "at noon")]
    filler = [f"Number {number} of what was said about nothing at all." for number in range(40)]
    converse(chat, *filler, *said, *filler)
    seal(chat.pk)
    chat.refresh_from_db()
    service.answer = by_length

    def recalled(limit_tokens: int = 20) -> str:
        with for_organization(chat.organization_id):
            search = PathSearch(chat.pk, 10**6)
            found = recall_talk(search, "Where was the heron?", limit_tokens=limit_tokens)
        return "\n".join(block.content for block in found.taken)

    assert "noon" in recalled()
    assert "pond" not in recalled()
    service.answer = by_length_of_the_longest
    assert "pond" in recalled()
    settings.AMBER_RERANK_TURN_SECONDS = 0
    service.asked.clear()
    recalled()
    assert service.asked == []


@pytest.fixture
def offline_embedder(db: None) -> None:
    offline = Provider.objects.create(name="Offline", base_url=OFFLINE_URL)
    EmbeddingModel.objects.create(
        provider=offline, alias="offline", upstream_id="offline", dimensions=512, default=True
    )


def by_length_of_the_longest(body: dict[str, Any]) -> Any:
    return [{"index": n, "score": len(text)} for n, text in enumerate(body["texts"])]
