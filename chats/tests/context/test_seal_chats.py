"""Test that old messages become blocks, that relevant ones return, and abandoned text does not."""

import json
import threading
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from django.utils import timezone

from chats import services
from chats.context.block_search import PathSearch
from chats.context.manifest import request_hash, without_texts
from chats.context.recall import recall
from chats.context.search_tool import search_conversation
from chats.digest import digest as digests
from chats.digest.blocks import embed_waiting, seal
from chats.digest.digest import digest_turns
from chats.models import Chat, ChatMessage, MessageBlock, Turn
from chats.tests.context.earlier_talk import models, small
from chats.tests.rows import converse, new_assistant, new_chat, new_turn, of_turn, say
from chats.tests.runs import ask_in, prepared_for
from memory.facts.facts import Fact, remember
from memory.owner import Owner
from providers.models import OFFLINE_URL, EmbeddingModel, Provider
from tests.fixtures.personas import Persona, api
from tests.fixtures.tenants import for_organization
from tests.rest.documented import check
from tools.protocol import ToolContext

__all__ = ["models", "small"]

FILLER = "We talked about the weather and the garden for a while, and it was nice. " * 4


@pytest.fixture
def embedder(db: None) -> EmbeddingModel:
    offline = Provider.objects.create(name="Offline", base_url=OFFLINE_URL)
    return EmbeddingModel.objects.create(
        provider=offline, alias="offline", upstream_id="offline", dimensions=512, default=True
    )


@pytest.fixture
def chat(alice: Persona, embedder: EmbeddingModel) -> Chat:
    return new_chat(alice, assistant=new_assistant(alice))


def talk(chat: Chat, exchanges: int, **said: str) -> None:
    """Exchanges of filler; `said={"n3": "…"}` is what the user says in the third."""
    texts = []
    for number in range(1, exchanges + 1):
        texts += [said.get(f"n{number}", f"{FILLER} ({number})"), f"{FILLER} Yes, {number}."]
    converse(chat, *texts)


def blocks_of(chat: Chat) -> list[MessageBlock]:
    return list(MessageBlock.objects.filter(chat=chat).order_by("last_position"))


def found(chat: Chat, question: str) -> str:
    chat.refresh_from_db()
    with for_organization(chat.organization_id):
        recalled = recall(PathSearch(chat.pk, 10**6), question, limit_tokens=2_000)
    return "\n".join(block.content for block in recalled.taken)


def test_blocks_hold_whole_exchanges_in_a_chain_from_the_start(chat):
    talk(chat, 20)
    assert seal(chat.pk) > 3
    blocks = blocks_of(chat)
    path = list(ChatMessage.objects.filter(chat=chat).order_by("position"))
    held = [pk for block in blocks for pk in block.messages]
    assert held == [message.pk for message in path[: len(held)]]
    assert len(path) - len(held) >= 2
    for before, block in pairwise(blocks):
        assert block.previous == before
        assert block.tokens_before == before.tokens_before + before.tokens
    assert all(block.tokens >= 200 for block in blocks)
    assert all(path[block.first_position].role == "human" for block in blocks)
    assert all(block.embedding_model_id and block.on_active_path for block in blocks)


def test_sealing_again_adds_only_what_is_new(chat):
    talk(chat, 20)
    first = seal(chat.pk)
    assert seal(chat.pk) == 0
    talk(chat, 10)
    second = seal(chat.pk)
    assert second > 0
    assert len({block.hash for block in blocks_of(chat)}) == first + second


def test_the_opening_prompt_is_in_no_block(chat):
    opening = say(chat, "Always answer in rhyme.", role="system")
    talk(chat, 10)
    seal(chat.pk)
    assert opening.pk not in blocks_of(chat)[0].messages
    assert "rhyme" not in blocks_of(chat)[0].full_content


def test_a_short_chat_is_not_sealed(chat):
    converse(chat, "Hi", "Hello", "How?", "So.")
    assert seal(chat.pk) == 0


def test_texts_that_cannot_fill_a_block_are_not_read(chat, django_assert_num_queries):
    talk(chat, 1)  # long enough, but the last exchange is in no block
    with django_assert_num_queries(3):
        assert seal(chat.pk) == 0
    talk(chat, 1)
    with django_assert_num_queries(4):
        assert seal(chat.pk) == 0


def test_what_matters_comes_back(chat):
    talk(
        chat,
        40,
        n7="My sister Clara adopted a cat called Biscuit.",
        n20="我的护照号码是E12345678。",
    )
    seal(chat.pk)
    assert "Biscuit" in found(chat, "What is the name of Clara's cat?")
    assert "E12345678" in found(chat, "我的护照号码是多少？")
    assert found(chat, "How do I compile the Linux kernel?") == ""
    assert found(chat, "") == ""


def test_nothing_of_another_chat_comes_back(chat, alice):
    talk(chat, 20, n3="My sister Clara adopted a cat called Biscuit.")
    other = new_chat(alice, assistant=chat.assistant)
    talk(other, 20)
    seal(chat.pk)
    seal(other.pk)
    assert "Biscuit" not in found(other, "What is the name of Clara's cat?")


def test_an_edit_leaves_the_abandoned_branch_unrecalled_at_once(chat, alice):
    talk(chat, 30, n15="My sister Clara adopted a cat called Biscuit.")
    seal(chat.pk)
    early = ChatMessage.objects.get(chat=chat, position=10)
    posted = services.edit_message(early, alice.principal, content="Something else")
    assert "Biscuit" not in found(chat, "What is the name of Clara's cat?")
    assert posted.turn is not None
    text = str(
        prepared_for(
            Turn.objects.select_related("chat", "assistant").get(pk=posted.turn.pk)
        ).request.messages
    )
    assert "Biscuit" not in text


def test_branches_share_the_blocks_of_their_beginning(chat, alice):
    talk(chat, 30)
    seal(chat.pk)
    before = blocks_of(chat)
    chat.refresh_from_db()
    old_leaf = chat.active_leaf
    assert old_leaf is not None
    middle = ChatMessage.objects.get(chat=chat, position=30)
    say(chat, "Another way", parent=middle.parent)
    talk(chat, 20)
    seal(chat.pk)
    active = [block.pk for block in blocks_of(chat) if block.on_active_path]
    shared = [block.pk for block in before if block.last_position < 30]
    assert shared
    assert active[: len(shared)] == shared
    assert not {block.pk for block in before if block.first_position >= 30} & set(active)
    services.switch_branch(chat, old_leaf)
    assert [block.pk for block in blocks_of(chat) if block.on_active_path] == [b.pk for b in before]


def test_a_deleted_message_is_not_recalled_and_the_rest_is_sealed_again(chat):
    talk(chat, 30, n10="My sister Clara adopted a cat called Biscuit.")
    seal(chat.pk)
    count = MessageBlock.objects.filter(chat=chat).count()
    services.delete_message(ChatMessage.objects.get(chat=chat, content__contains="Biscuit"))
    assert found(chat, "What is the name of Clara's cat?") == ""
    seal(chat.pk)
    assert abs(MessageBlock.objects.filter(chat=chat).count() - count) <= 1
    assert "Biscuit" not in "".join(block.full_content for block in blocks_of(chat))


def test_without_an_embedder_blocks_wait_and_words_find(chat, embedder):
    EmbeddingModel.objects.filter(pk=embedder.pk).update(enabled=False)
    talk(chat, 20, n3="My sister Clara adopted a cat called Biscuit.")
    seal(chat.pk)
    assert all(block.embedding_model_id is None for block in blocks_of(chat))
    assert "Biscuit" in found(chat, "What is the name of Clara's cat?")
    EmbeddingModel.objects.filter(pk=embedder.pk).update(enabled=True)
    embed_waiting()
    assert all(block.embedding_model_id == embedder.pk for block in blocks_of(chat))


def test_the_context_of_a_long_chat_holds_the_tail_and_what_matters(chat, alice):
    opening = "Always answer in rhyme."
    say(chat, opening, role="system")
    talk(chat, 60, n7="My sister Clara adopted a cat called Biscuit.")
    seal(chat.pk)
    chat.refresh_from_db()
    turn = ask_in(chat, alice, "What is the name of Clara's cat?")
    prepared = prepared_for(
        Turn.objects.select_related("chat", "assistant", "question").get(pk=turn.pk)
    )
    messages: Any = prepared.request.messages
    assert opening in messages[0]["content"]
    assert "An earlier part of this conversation (" in messages[-2]["content"]
    assert "Biscuit" in messages[-2]["content"]
    assert messages[-1]["content"].endswith("What is the name of Clara's cat?")
    assert len(messages) < 30
    manifest = prepared.manifest()
    assert manifest["history_is_cut"] is True
    assert manifest["tokens"]["blocks"] > 0
    assert 0 < manifest["cacheable_share"] < 1


def test_the_beginning_of_requests_stays_the_same_for_many_turns(chat):
    talk(chat, 60)
    beginnings = []
    for number in range(12):
        converse(chat, f"{FILLER} question {number}", f"{FILLER} answer {number}")
        seal(chat.pk)
        chat.refresh_from_db()
        question = say(chat, "And?")
        turn = new_turn(chat, assistant=chat.assistant, question=question, status="completed")
        prepared = prepared_for(Turn.objects.select_related("chat", "assistant").get(pk=turn.pk))
        beginnings.append(str(prepared.request.messages[:3]))
    changes = sum(before != after for before, after in pairwise(beginnings))
    assert changes <= 4


@pytest.mark.django_db(transaction=True)
def test_a_digest_seals_chats_whose_turns_ended(chat):
    talk(chat, 20)
    turn = new_turn(chat, status="completed", digest_at=timezone.now(), ended_at=timezone.now())
    digest_turns()
    turn.refresh_from_db()
    assert turn.digest_at is None
    assert blocks_of(chat)


@pytest.mark.django_db(transaction=True)
def test_digests_are_made_by_a_few_threads_that_stay(chat, monkeypatch):
    """Each new one leaves what Django connects it with, until that is collected."""
    seen = set()
    monkeypatch.setattr(digests, "digest", lambda *_: seen.add(threading.current_thread()))
    turn = new_turn(chat, status="completed", ended_at=timezone.now())
    for _ in range(12):
        Turn.objects.filter(pk=turn.pk).update(digest_at=timezone.now())
        digest_turns()
    assert 1 <= len(seen) <= 8


def search(chat: Chat, query: str, **fields: Any) -> str:
    chat.refresh_from_db()
    turn = new_turn(chat, assistant=chat.assistant, tip=chat.active_leaf, status="completed")
    context = ToolContext(chat.organization_id, chat_id=chat.pk, turn_id=turn.pk, **fields)
    with for_organization(chat.organization_id):
        return search_conversation(context, query)


def test_the_tool_finds_exact_messages_with_their_time(chat):
    talk(chat, 30, n7="My sister Clara adopted a cat called Biscuit.")
    seal(chat.pk)
    message = ChatMessage.objects.get(chat=chat, content__contains="Biscuit")
    ChatMessage.objects.filter(pk=message.pk).update(
        created_at=datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    )
    found = search(chat, "Biscuit", time_zone="Asia/Shanghai")
    assert "[2026-03-02 07:30:00] User: My sister Clara adopted a cat called Biscuit." in found
    assert "Nothing of that kind" in search(chat, "zebra quantum")


def test_the_tool_does_not_find_abandoned_text(chat):
    talk(chat, 30, n15="My sister Clara adopted a cat called Biscuit.")
    seal(chat.pk)
    early = ChatMessage.objects.get(chat=chat, position=10)
    say(chat, "Something else", parent=early.parent)
    assert "Clara" not in search(chat, "Clara Biscuit")


def test_the_request_can_be_made_again_from_the_manifest(chat, alice):
    say(chat, "Always answer in rhyme.", role="system")
    talk(chat, 60, n7="My sister Clara adopted a cat called Biscuit.")
    seal(chat.pk)
    chat.refresh_from_db()
    remember(Owner.of(alice.principal), Fact("The user's cat is called Rex"))
    posted = ask_in(chat, alice, "What is the name of Clara's cat?")
    turn = Turn.objects.select_related("chat", "assistant", "question").get(pk=posted.pk)
    prepared = prepared_for(turn)
    turn.manifest = json.loads(json.dumps(prepared.manifest()))
    turn.save()
    answer = api(alice).get(of_turn(turn, "manifest/?request=true")).json()
    reached = check("get", of_turn(turn, "manifest/"), 200, answer)
    assert reached > {"BlockPart", "MemoryPart", "MessagePart"}
    assert answer["request"] == json.loads(json.dumps(prepared.request.messages))
    assert request_hash(answer["request"]) == answer["request_hash"]
    assert answer["memories"][0]["content"] == "The user's cat is called Rex"
    MessageBlock.objects.filter(chat=chat).delete()
    assert api(alice).get(of_turn(turn, "manifest/?request=true")).json()["request"] is None


def test_operators_read_ids_and_counts_alone(chat, alice):
    remember(Owner.of(alice.principal), Fact("The user's cat is called Rex"))
    posted = ask_in(chat, alice, "What is the name of the cat?")
    turn = Turn.objects.select_related("chat", "assistant", "question").get(pk=posted.pk)
    manifest = without_texts(prepared_for(turn).manifest())
    assert "Rex" not in json.dumps(manifest)
    assert manifest["memories"][0]["tokens"] > 0
    assert "system_prompts" not in manifest
