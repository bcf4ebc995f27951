"""Test that single messages of earlier talk are recalled, and nothing for a question about something else."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from amber.lib.ids import new_id
from amber.lib.search.hybrid import index_text
from chats.context import block_search
from chats.context.block_search import PathSearch
from chats.context.recall import RecallResult, find_messages, recall, recall_ahead
from chats.digest import blocks as digest_blocks
from chats.digest.blocks import embed, reindex_waiting, seal
from chats.messages.block_words import (
    INDEX_VERSION,
    chat_word,
    lexemes_of,
    places_in,
    terms_of,
)
from chats.models import Chat, ChatMessage, MessageBlock, Turn
from chats.tests.context.earlier_talk import FACT, chat, models, small, talk
from chats.tests.runs import ask_in, prepared_for
from engine.context.blocks import SpokenMessage
from engine.context.pieces import FIELDS, read_pieces, show
from providers.models import OFFLINE_URL, EmbeddingModel, Provider
from tests.fixtures.tenants import for_organization

__all__ = ["chat", "models", "small"]

UNRELATED = "How does photosynthesis explain the market halls of Mongolia?"


@pytest.fixture
def built_in(db: None) -> EmbeddingModel:
    return new_embedder(OFFLINE_URL)


def new_embedder(url: str) -> EmbeddingModel:
    provider = Provider.objects.create(name=url, base_url=url)
    return EmbeddingModel.objects.create(
        provider=provider, alias=f"model of {url}", upstream_id="e", dimensions=64, default=True
    )


def ask(
    chat: Chat,
    question: str,
    limit_tokens: int = 2_000,
    *,
    today: date | None = None,
    **by_meaning: Any,
) -> RecallResult:
    search = PathSearch(chat.pk, 10**6, **by_meaning)
    with for_organization(chat.organization_id):
        return recall(search, question, limit_tokens=limit_tokens, today=today)


def shown(found: RecallResult) -> list[UUID]:
    return [pk for block in found.taken for pk in block.message_ids]


def test_the_message_and_its_neighbours_are_shown_not_the_block(chat):
    rows = talk(chat, 60, (40, FACT))
    seal(chat.pk)
    found = ask(chat, "What is the name of Clara's cat?")
    assert rows[40].pk in shown(found)
    assert rows[41].pk in shown(found)
    assert len(shown(found)) <= 7
    block = next(block for block in found.taken if rows[40].pk in block.message_ids)
    stored = MessageBlock.objects.get(pk=block.id)
    assert block.content != stored.full_content
    assert block.tokens < stored.tokens
    assert block.from_at >= stored.from_at
    assert 0 < block.relevance <= 1


def test_a_small_budget_holds_the_best_message(chat):
    rows = talk(chat, 60, (40, FACT))
    seal(chat.pk)
    found = ask(chat, "What is the name of Clara's cat?", limit_tokens=15)
    assert shown(found) == [rows[40].pk]
    assert sum(block.tokens for block in found.taken) <= 15


@pytest.mark.parametrize(
    "question",
    [
        "How do I compile the Linux kernel?",
        "Why did the Roman Empire fall?",
        UNRELATED,
        "Where does Oliver keep his cat?",
    ],
)
def test_a_question_about_something_else_recalls_nothing(chat, question):
    talk(chat, 60, (40, FACT))
    seal(chat.pk)
    assert not ask(chat, question).taken


def test_what_shares_too_little_is_told_in_the_manifest(chat, alice, built_in):
    talk(chat, 60, (40, FACT))
    seal(chat.pk)
    assert ask(chat, UNRELATED).is_unrelated
    chat.refresh_from_db()
    turn = ask_in(chat, alice, UNRELATED)
    manifest = prepared_for(turn).manifest()
    assert not manifest["blocks"]
    assert "unrelated" in [each["code"] for each in manifest["left_out"]]


def test_a_date_decides_between_two_like_messages(chat):
    rows = talk(chat, 60, (20, "We had dinner with Clara."), (80, "We had dinner with Clara."))
    ChatMessage.objects.filter(pk=rows[20].pk).update(created_at=datetime(2025, 3, 5, tzinfo=UTC))
    ChatMessage.objects.filter(pk=rows[80].pk).update(created_at=datetime(2025, 5, 6, tzinfo=UTC))
    seal(chat.pk)
    for question, today, wanted in (
        ("When was dinner with Clara in March 2025?", date(2026, 1, 1), 20),
        ("Was there dinner with Clara last week?", date(2025, 5, 13), 80),
    ):
        found = ask(chat, question, limit_tokens=14, today=today)
        assert shown(found) == [rows[wanted].pk]


def test_the_assistant_is_found_by_name(chat):
    talk(chat, 60, (41, "Take the night train to Turin."))
    seal(chat.pk)
    block = MessageBlock.objects.filter(chat=chat).order_by("last_position").first()
    assert block is not None
    assert "'quentin':" in str(
        MessageBlock.objects.values_list("search", flat=True).get(pk=block.pk)
    )


def test_a_name_leads_to_what_its_bearer_said(chat):
    thanks = [(n, "Thanks, Odile! That helps.") for n in (4, 22, 52, 88)]
    rows = talk(chat, 60, *thanks, (71, "I am reading Piranesi, slowly."))
    seal(chat.pk)
    found = ask(chat, "What does Odile like reading?", limit_tokens=16)
    assert shown(found) == [rows[71].pk]


def test_a_name_leads_to_its_bearer_among_the_latest_messages(chat):
    talk(chat, 30, (4, "Thanks, Odile!"), (22, "Thanks, Odile!"))
    seal(chat.pk)
    said = ["Thanks, Odile!", "I am reading Piranesi, slowly.", "x", "y", "z", "Thanks, Odile!"]
    latest = [
        SpokenMessage(str(new_id()), role, text, datetime(2026, 2, 1, tzinfo=UTC), 5)
        for role, text in zip(["human", "assistant"] * 3, said, strict=True)
    ]
    with for_organization(chat.organization_id):
        search = PathSearch(chat.pk, 10**6, latest=[*latest[:5], replace(latest[5], role="human")])
        found = find_messages(
            search, "What does Odile like reading?", today=date(2026, 2, 1), limit=1
        )
    assert [str(each.id) for each in found] == [latest[1].id]


def test_a_name_that_only_the_latest_messages_call_leads_to_what_was_said_before_them(chat):
    told = "I am reading Piranesi, slowly and twice."
    rows = talk(chat, 30, (21, told), (40, "Odile? I know no Odile"))
    seal(chat.pk)
    latest = [
        SpokenMessage(str(new_id()), "human", text, datetime(2026, 2, 1, tzinfo=UTC), 5)
        for text in ("Thanks, Odile!", "Thanks, Odile!")
    ]
    with for_organization(chat.organization_id):
        search = PathSearch(chat.pk, 10**6, latest=latest)
        found = find_messages(
            search, "What does Odile like reading?", today=date(2026, 2, 1), limit=1
        )
    assert [each.id for each in found] == [rows[21].pk]


def test_a_block_that_reaches_into_the_tail_is_not_recalled(chat):
    rows = talk(chat, 60, (4, FACT))
    seal(chat.pk)
    first = MessageBlock.objects.filter(chat=chat).earliest("first_position")
    with for_organization(chat.organization_id):
        before, behind = (
            recall(PathSearch(chat.pk, at), "Which cat did Clara adopt?", limit_tokens=16)
            for at in (first.last_position, first.last_position + 1)
        )
    assert shown(before) == []
    assert shown(behind) == [rows[4].pk]


@pytest.mark.parametrize(
    ("search", "places"),
    [
        ("'bobcat':1 'cat':2,13 'catalogue':3", [1, 12]),
        ("'at':1 'cat':7", [6]),
        ("'at' 'cat' 'dog'", [0]),
        ("'bobcat':1 'catalogue':2", None),
        ("'at'':' 'cat':7", [6]),
        ("", None),
    ],
)
def test_the_places_of_a_word_are_read_from_the_index(search, places):
    assert places_in(search, {"'cat": ["cat"]}).get("cat") == places


def test_a_long_answer_is_shown_in_part(chat):
    long = "\n\n".join(f"Paragraph {n} is about gardens and rain. " * 12 for n in range(8))
    rows = talk(chat, 60, (41, f"{long}\n\nClara's cat is called Biscuit."))
    seal(chat.pk)
    found = ask(chat, "What is the name of Clara's cat?", limit_tokens=250)
    assert rows[41].pk in shown(found)
    text = "\n".join(block.content for block in found.taken)
    assert "Biscuit" in text
    assert "Paragraph 1 " not in text


def texts_of_blocks(found: RecallResult) -> list[str]:
    """What is shown of each block, cut out of the block's own text."""
    rows = MessageBlock.objects.in_bulk([block.id for block in found.taken])
    return [
        show([(p, rows[block.id].full_content[p.start : p.end]) for p in block.pieces.values()])
        for block in found.taken
    ]


@pytest.mark.parametrize(
    "said",
    [
        FACT,
        f"  \n{FACT}\n\nShe found it.  \n",
        "\n\n".join(f"Paragraph {n} is about Clara's cat and rain. " * 12 for n in range(8)),
        f"克拉拉：{FACT} — 🐈 " * 30,
    ],
)
def test_what_was_said_is_shown_as_it_was_sealed_but_read_from_the_messages(chat, said):
    talk(chat, 60, (40, said), (61, FACT))
    seal(chat.pk)
    with CaptureQueriesContext(connection) as queries:
        found = ask(chat, "What is the name of Clara's cat?")
    assert "cat" in texts_of_blocks(found)[0]
    assert [block.content for block in found.taken] == texts_of_blocks(found)
    assert not any("full_content" in query["sql"] for query in queries)


def test_what_was_not_said_or_is_no_longer_what_was_sealed_is_read_from_the_block(chat):
    rows = talk(chat, 60, (40, FACT), (60, FACT), (80, FACT))
    call = {"id": "c1", "name": "find", "arguments": "{}", "reply_id": None}
    ChatMessage.objects.filter(pk=rows[40].pk).update(role="tool", tool_call=call)
    seal(chat.pk)
    ChatMessage.objects.filter(pk=rows[60].pk).update(content="Something else by now.")
    found = ask(chat, "What is the name of Clara's cat?")
    assert {rows[n].pk for n in (40, 60, 80)} <= {*shown(found)}
    assert [block.content for block in found.taken] == texts_of_blocks(found)
    assert f"find returned: {FACT}" in "".join(block.content for block in found.taken)
    strange = [block for block in found.taken if rows[40].pk in block.message_ids]
    assert [block.is_untrusted for block in strange] == [True]


def test_only_the_words_asked_for_leave_the_index(chat, monkeypatch):
    talk(chat, 60, (4, "Thanks, Clara!"), (40, FACT), (44, "Thanks, Clara!"))
    seal(chat.pk)
    indexes: list[str] = []

    def note(row: Any) -> Any:
        indexes.append(row.search)
        return cut_block(row)

    cut_block = block_search._cut_block
    monkeypatch.setattr(block_search, "_cut_block", note)
    ask(chat, "Which cat has Clara adopted?")
    asked = terms_of("Which cat has Clara adopted?", date(2026, 1, 1))
    words = {entry.rpartition(":")[0].strip("'") for index in indexes for entry in index.split()}
    assert {"cat", "clara", "@to:clara", "@by:user"} <= words <= {*lexemes_of(asked)}
    assert not any(
        word.startswith("@") for word in lexemes_of(replace(asked, names=(), dates=(), kinds=()))
    )


def test_what_is_left_out_for_the_budget_is_named(chat):
    facts = [(n, f"Clara's cat number {n} is called Biscuit.") for n in range(10, 90, 20)]
    talk(chat, 60, *facts)
    seal(chat.pk)
    found = ask(chat, "What are Clara's cats called?", limit_tokens=20)
    assert len(found.taken) == 1
    assert found.left_out
    assert found.taken[0].id not in found.left_out


def test_the_manifest_names_the_messages_and_their_pieces(chat, alice, built_in):
    rows = talk(chat, 60, (40, FACT))
    seal(chat.pk)
    chat.refresh_from_db()
    turn = ask_in(chat, alice, "What is the name of Clara's cat?")
    blocks = prepared_for(turn).manifest()["blocks"]
    assert str(rows[40].pk) in [pk for block in blocks for pk in block["message_ids"]]
    assert all(block["pieces"] == sorted(block["pieces"]) for block in blocks)


def test_times_are_those_of_whoever_reads(chat, alice, built_in):
    rows = talk(chat, 60, (40, FACT))
    seal(chat.pk)
    chat.refresh_from_db()
    alice.user.time_zone = "Asia/Shanghai"
    alice.user.save()
    turn = ask_in(chat, alice, "What is the name of Clara's cat?")
    turn = Turn.objects.select_related("chat", "assistant", "question", "user").get(pk=turn.pk)
    messages: Any = prepared_for(turn).request.messages
    said = rows[40].created_at + timedelta(hours=8)
    assert f"({said:%Y-%m-%d %H:%M})\nUser: {FACT}" in messages[-2]["content"]


def as_an_older_release(chat: Chat) -> None:
    """Make the chat's blocks as they were before there were pieces."""
    for block in MessageBlock.objects.filter(chat=chat):
        block.search = index_text(block.full_content, chat_word(chat.pk))
        block.pieces, block.piece_vectors, block.index_version = None, None, 0
        block.save()


def test_blocks_of_an_older_release_are_found_as_a_whole_and_then_cut(chat):
    rows = talk(chat, 60, (40, FACT))
    seal(chat.pk)
    new = list(
        MessageBlock.objects.filter(chat=chat).values_list("search", "pieces").order_by("pk")
    )
    as_an_older_release(chat)
    found = ask(chat, "What is the name of Clara's cat?")
    assert "Biscuit" in "".join(block.content for block in found.taken)
    assert found.taken[0].content == MessageBlock.objects.get(pk=found.taken[0].id).full_content
    with for_organization(chat.organization_id):
        reindex_waiting()
    again = MessageBlock.objects.filter(chat=chat)
    assert list(again.values_list("search", "pieces").order_by("pk")) == new
    assert set(again.values_list("index_version", flat=True)) == {INDEX_VERSION}
    assert len(shown(ask(chat, "What is the name of Clara's cat?"))) <= 7
    assert rows[40].pk in shown(ask(chat, "What is the name of Clara's cat?"))


def test_other_words_of_a_newer_release_keep_the_pieces(chat, monkeypatch):
    talk(chat, 60, (40, FACT))
    seal(chat.pk)
    pieces = list(MessageBlock.objects.filter(chat=chat).values_list("pieces", flat=True))
    MessageBlock.objects.filter(chat=chat).update(search=None)
    monkeypatch.setattr(digest_blocks, "INDEX_VERSION", INDEX_VERSION + 1)
    with for_organization(chat.organization_id):
        reindex_waiting()
    assert list(MessageBlock.objects.filter(chat=chat).values_list("pieces", flat=True)) == pieces
    assert ask(chat, "What is the name of Clara's cat?").taken


def write_vectors(chat: Chat, near: UUID) -> tuple[Any, UUID]:
    """Give each piece a random vector, but the one message the question's own."""
    rng = np.random.default_rng(1)
    model_id = UUID(int=7)
    question = rng.normal(size=64).astype(np.float32)
    for block in MessageBlock.objects.filter(chat=chat):
        vectors = rng.normal(size=(len(block.pieces) // FIELDS, 64)).astype(np.float32)
        for place, piece in enumerate(read_pieces(block.pieces)):
            if block.messages[piece.message] == near:
                vectors[place] = question
        block.vector, block.piece_vectors = vectors.mean(axis=0), list(vectors)
        block.embedding_model_id = model_id
        block.save()
    return question, model_id


def test_what_is_near_in_meaning_comes_first_among_what_the_words_find(chat):
    rows = talk(chat, 60, (20, "Clara has a cat."), (80, "Clara has a cat."))
    seal(chat.pk)
    for wanted in (20, 80):
        vector, model_id = write_vectors(chat, rows[wanted].pk)
        found = ask(chat, "Clara has which cat?", limit_tokens=12, vector=vector, model_id=model_id)
        assert shown(found) == [rows[wanted].pk]


def test_vectors_of_another_model_are_not_compared(chat):
    rows = talk(chat, 60, (20, FACT))
    seal(chat.pk)
    vector, _ = write_vectors(chat, rows[60].pk)
    found = ask(chat, "Clara has which cat?", vector=vector, model_id=UUID(int=8))
    assert rows[20].pk in shown(found)
    assert rows[60].pk not in shown(found)


def test_each_piece_is_embedded_by_a_real_model_and_none_by_the_built_in_one(chat, monkeypatch):
    talk(chat, 30, (10, FACT))
    texts: list[str] = []

    def embed_texts(given: list[str], **_: Any) -> Any:
        texts.extend(given)
        return np.eye(64, dtype=np.float32)[: len(given)] + 0.01

    monkeypatch.setattr(digest_blocks, "embed_texts", embed_texts)
    embedder = new_embedder("http://127.0.0.1:9/v1")
    seal(chat.pk)
    block = MessageBlock.objects.filter(chat=chat).order_by("last_position")[0]
    pieces = read_pieces(block.pieces)
    assert block.embedding_model_id == embedder.pk
    assert len(block.piece_vectors) == len(pieces)
    assert texts[: len(pieces)] == [block.full_content[p.start : p.end] for p in pieces]
    mean = np.mean([vector.to_list() for vector in block.piece_vectors], axis=0)
    assert np.allclose(block.vector, mean, atol=1e-3)
    Provider.objects.update(base_url=OFFLINE_URL)
    texts.clear()
    assert embed([block])
    block.refresh_from_db()
    assert texts == [block.full_content]
    assert block.piece_vectors is None


def test_the_built_in_embedder_has_no_say(chat, alice, built_in, monkeypatch):
    talk(chat, 60, (40, FACT))
    seal(chat.pk)
    chat.refresh_from_db()
    given: list[PathSearch] = []

    def note(search: PathSearch, *asked: Any, **fields: Any) -> Any:
        given.append(search)
        return recall_ahead(search, *asked, **fields)

    monkeypatch.setattr("chats.context.findings.recall_ahead", note)
    prepared_for(ask_in(chat, alice, "What is the name of Clara's cat?"))
    assert [search.vector for search in given] == [None]


def test_a_question_asks_for_irregular_forms_and_not_for_whom_it_speaks_to():
    today = date(2025, 3, 1)
    asked = terms_of("What did the doctor say when Clara lost her keys?", today)
    assert "lose" in asked.forms_of("lost")
    assert asked.names == {"clara"}
    assert not terms_of("How do I boil an egg, Iris?", today).names
