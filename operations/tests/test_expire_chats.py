"""Test chats that expire: hidden at once, then deleted with all that belongs to them alone."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from accounts.models import ApiKey
from amber.lib.workers import time_slice
from chats import services
from chats.models import Chat, ChatMessage, MessageBlock, Turn
from chats.tests.rows import converse, new_assistant, new_chat, new_turn, of_chat, say
from chats.tests.turns.leftovers import (
    cached_vectors,
    furnish,
    is_gone,
    is_stored,
    new_stored_file,
    rows_in,
)
from libraries.models import Document, File, Library
from memory.facts.facts import Fact, remember
from memory.models import Memory
from memory.owner import Owner
from operations.privacy import chat_deletion, retention
from operations.privacy.chat_deletion import remove_chat
from operations.privacy.retention import expire_old_chats, remove_expired_chats
from providers.models import EmbeddingModel, UsageRecord
from tests.fixtures.personas import Persona, api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def embedder(provider: Any, settings: Any) -> EmbeddingModel:
    """The fake provider's: its vectors are cached, as a real one's are."""
    settings.AMBER_BLOCK_TOKENS = 50
    return EmbeddingModel.objects.create(
        provider=provider, alias="e", upstream_id="fake-embedding", dimensions=64, default=True
    )


def long_ago(days: float = 1) -> Any:
    return timezone.now() - timedelta(days=days)


def new(persona: Persona, **fields: Any) -> Chat:
    return new_chat(persona, assistant=new_assistant(persona), **fields)


def touched(chat: Chat, days_ago: float) -> None:
    Chat.objects.filter(pk=chat.pk).update(updated_at=long_ago(days_ago))


# -- Expiry ----------------------------------------------------------------------------------------


def test_an_expired_chat_is_absent_before_it_is_deleted(alice):
    chat = new(alice)
    message = say(chat)
    turn = new_turn(chat, status="completed", manifest={"model": "m"})
    Chat.objects.filter(pk=chat.pk).update(expired_at=long_ago())
    client = api(alice)
    for address in (
        of_chat(chat),
        of_chat(chat, "messages/"),
        of_chat(chat, "export/"),
        f"/api/v1/messages/{message.pk}/",
        f"/api/v1/turns/{turn.pk}/",
        f"/api/v1/turns/{turn.pk}/manifest/",
    ):
        assert client.get(address).status_code == 404, address
    assert client.get("/api/v1/chats/").json()["results"] == []
    assert client.get("/api/v1/chats/search/", {"q": "Hi"}).json()["results"] == []


def test_everything_of_an_expired_chat_goes_and_nothing_else(alice, bob):
    expired, kept, later = new(alice), new(alice), new(bob)
    for chat, persona in ((expired, alice), (kept, alice), (later, bob)):
        furnish(chat, persona)
    before = [rows_in(kept), rows_in(later)]
    Chat.objects.filter(pk=expired.pk).update(expired_at=long_ago())
    Chat.objects.filter(pk=later.pk).update(expired_at=timezone.now() + timedelta(days=1))
    remove_expired_chats()
    assert is_gone(expired)
    assert [rows_in(kept), rows_in(later)] == before
    remove_expired_chats()
    assert Chat.objects.count() == 2


def test_its_files_go_with_their_bytes_unless_somebody_else_refers_to_them(alice, embedder):
    chat, other = new(alice), new(alice)
    alone, shared, indexed, unused = (new_stored_file(alice) for _ in range(4))
    for file in (alone, shared, indexed):
        say(chat, "", role="file", file=file)
    say(chat, "", role="file", file=alone)
    say(other, "", role="file", file=shared)
    library = Library.objects.create(
        organization=alice.organization, name="L", embedding_model=embedder
    )
    Document.objects.create(
        organization=alice.organization, library=library, name="D", file=indexed
    )
    assert remove_chat(chat.pk)
    assert not is_stored(alone)
    assert all(is_stored(file) for file in (shared, indexed, unused))
    assert set(File.objects.all()) == {shared, indexed, unused}


def test_the_vectors_of_its_blocks_leave_the_cache(alice):
    chat = new(alice)
    furnish(chat, alice)
    assert cached_vectors() > MessageBlock.objects.filter(chat=chat).count() > 1
    assert remove_chat(chat.pk)
    assert cached_vectors() == 0


def test_a_persons_memory_stays_without_its_evidence(alice, bob):
    chat, other = new(alice), new(alice)
    memory = furnish(chat, alice)
    elsewhere = say(other, "Biscuit, I said")
    remember(Owner.of(alice.principal), Fact(memory.content, evidence=[elsewhere.pk]))
    foreign, _ = remember(
        Owner.of(bob.principal), Fact("Bob's own", evidence=list(memory.evidence))
    )
    remove_chat(chat.pk)
    memory.refresh_from_db()
    assert memory.evidence == [elsewhere.pk]
    remove_chat(other.pk)
    memory.refresh_from_db()
    assert memory.evidence == []
    foreign.refresh_from_db()
    assert len(foreign.evidence) == 1


def test_a_guests_memory_goes_with_what_it_rests_on(alice):
    chat = new(alice, owner="guest", guest_id="g1", expired_at=long_ago())
    furnish(chat, alice, guest_id="g1")
    guest = Owner(alice.organization.pk, guest_id="g1")
    kept, _ = remember(guest, Fact("Said elsewhere", evidence=[uuid4()]))
    remove_expired_chats()
    assert is_gone(chat)
    assert list(Memory.objects.all()) == [kept]


def test_a_chat_of_many_batches_goes(alice, monkeypatch):
    for name in ("MESSAGES_AT_ONCE", "TURNS_AT_ONCE", "BLOCKS_AT_ONCE"):
        monkeypatch.setattr(chat_deletion, name, 3)
    chat = new(alice)
    furnish(chat, alice)
    for _ in range(8):
        new_turn(chat, status="completed")
    assert remove_chat(chat.pk)
    assert is_gone(chat)
    assert not remove_chat(chat.pk)


def test_a_running_turn_is_stopped(alice):
    chat = new(alice)
    say(chat)
    turn = new_turn(chat, status="running", fence=1)
    assert remove_chat(chat.pk)
    assert not Turn.objects.filter(pk=turn.pk).exists()


def test_a_chat_in_use_is_left_for_the_next_time(alice):
    chat = new(alice)
    furnish(chat, alice)

    def remove() -> bool:
        try:
            return remove_chat(chat.pk)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        Chat.objects.select_for_update().get(pk=chat.pk)
        assert pool.submit(remove).result(30) is False
    assert remove_chat(chat.pk)


def test_two_at_once_do_no_harm(alice, bob):
    kept = new(bob)
    furnish(kept, bob)
    before = rows_in(kept)
    for _ in range(3):
        furnish(new(alice, expired_at=long_ago()), alice)

    def work(_: int) -> None:
        try:
            remove_expired_chats()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    remove_expired_chats()
    assert list(Chat.objects.all()) == [kept]
    assert rows_in(kept) == before


def test_nothing_new_refers_to_chats_unnoticed():
    """Rows are deleted without a cascade: a new reference must be added there, too."""
    known = {
        Chat: {
            *(("ChatMessage", "chat"), ("Turn", "chat"), ("MessageBlock", "chat")),
            ("Feedback", "chat"),
        },
        ChatMessage: {
            *(("Chat", "active_leaf"), ("ChatMessage", "parent"), ("ChatMessage", "opening")),
            *(("Turn", "question"), ("Turn", "tip")),
            *(("MessageBlock", "first_message"), ("MessageBlock", "last_message")),
            ("Feedback", "message"),
        },
        Turn: {("ChatMessage", "turn")},
        MessageBlock: {("MessageBlock", "previous")},
    }
    for model, references in known.items():
        found = {
            (field.related_model.__name__, field.field.name)  # type: ignore[union-attr]
            for field in model._meta.get_fields(include_hidden=True)
            if field.auto_created and field.is_relation and not field.concrete
        }
        assert found == references, model


# -- What an organization keeps --------------------------------------------------------------------


def test_chats_older_than_the_organization_keeps_are_expired(alice, mallory):
    alice.organization.retention_days = 30
    alice.organization.save()
    old, recent, foreign = new(alice), new(alice), new(mallory)
    for chat, days_ago in ((old, 31), (recent, 29), (foreign, 400)):
        converse(chat, "Hi", "Hello")
        touched(chat, days_ago)
    expire_old_chats()
    assert list(Chat.objects.past_expiry()) == [old]
    remove_expired_chats()
    assert set(Chat.objects.all()) == {recent, foreign}


def test_a_chat_that_goes_on_stays(alice):
    alice.organization.retention_days = 30
    alice.organization.save()
    chat = new(alice)
    say(chat)
    touched(chat, 31)
    services.post_message(chat.pk, alice.principal, role="system", content="Go on")
    expire_old_chats()
    assert not Chat.objects.past_expiry().exists()


def test_stateless_turns_go_too_and_the_ledger_stays(alice):
    alice.organization.retention_days = 30
    alice.organization.save()
    fields = {"organization": alice.organization, "user": alice.user, "input": {"messages": []}}
    old = Turn.objects.create(**fields, status="completed")
    Turn.objects.filter(pk=old.pk).update(created_at=long_ago(31))
    recent = Turn.objects.create(**fields, status="completed")
    live = Turn.objects.create(**fields, status="waiting")
    Turn.objects.filter(pk=live.pk).update(created_at=long_ago(31))
    UsageRecord.objects.create(organization=alice.organization, turn_id=old.pk, model="m")
    expire_old_chats()
    assert set(Turn.objects.all()) == {recent, live}
    assert UsageRecord.objects.count() == 1


def test_in_batches_and_within_its_time(alice, monkeypatch):
    monkeypatch.setattr(retention, "CHATS_AT_ONCE", 2)
    alice.organization.retention_days = 1
    alice.organization.save()
    for _ in range(5):
        touched(new(alice), 2)
    expire_old_chats()
    assert Chat.objects.past_expiry().count() == 5
    monkeypatch.setattr(time_slice, "SLICE_SECONDS", 0)
    remove_expired_chats()
    assert Chat.objects.count() == 5
    monkeypatch.setattr(time_slice, "SLICE_SECONDS", 60)
    remove_expired_chats()
    assert not Chat.objects.exists()


def test_both_searches_use_their_index(alice):
    fields = {"organization": alice.organization, "user": alice.user}
    Chat.objects.bulk_create(Chat(**fields) for _ in range(5_000))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE chats_chat")
    assert "chat_expiry" in Chat.objects.past_expiry().order_by("expired_at")[:10].explain()
    old = Chat.objects.before_expiry().filter(
        organization=alice.organization, updated_at__lt=long_ago(3)
    )
    assert "chat_org_activity" in old.order_by("updated_at")[:10].explain()


# -- What a person deletes -------------------------------------------------------------------------


def test_a_deleted_chat_and_a_deleted_message_are_no_evidence(alice):
    chat = new(alice)
    question, answer = converse(chat, "My cat is called Biscuit", "I see")
    owner = Owner.of(alice.principal)
    fact = Fact("The cat is called Biscuit", evidence=[question.pk, answer.pk])
    memory, _ = remember(owner, fact)
    services.delete_message(answer)
    memory.refresh_from_db()
    assert memory.evidence == [question.pk]
    services.delete_chat(chat)
    memory.refresh_from_db()
    assert memory.evidence == []


def test_where_a_memory_comes_from(alice, bob):
    chat = new(alice, name="Pets")
    question, answer = converse(chat, "My cat is called Biscuit", "I see")
    hidden = say(new(alice, expired_at=long_ago()), "Gone")
    foreign = say(new(bob), "Bob's")
    evidence = [answer.pk, question.pk, hidden.pk, foreign.pk, uuid4()]
    memory, _ = remember(Owner.of(alice.principal), Fact("A fact", evidence=evidence))
    address = f"/api/v1/memories/{memory.pk}/sources/"
    results = api(alice).get(address).json()["results"]
    assert [each["message"]["id"] for each in results] == [str(question.pk), str(answer.pk)]
    assert results[0]["chat"] == {"id": str(chat.pk), "name": "Pets"}
    assert results[0]["message"]["created_at"]
    assert api(bob).get(address).status_code == 404


def test_keys_survive_the_chats_they_made(alice):
    key, _ = alice.new_key()
    chat = new(alice, owner="api")
    say(chat)
    new_turn(chat, status="completed", api_key=key)
    assert remove_chat(chat.pk)
    assert ApiKey.objects.filter(pk=key.pk).exists()
