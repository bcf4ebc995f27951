"""Extraction: what the model decides, what is dropped, and what is found without a model."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest

from engine.provider.embedding import OfflineEmbedder
from engine.provider.model import (
    ModelProfile,
    ModelRequest,
    ProviderError,
    ReplyEnd,
    ReplyPart,
    TextChunk,
    Usage,
)
from engine.text.tokens import count_text
from memory.extraction.extractor import ConversationText, ExtractionCall
from memory.extraction.fact_finding import KNOWN_TOKENS, Extractor, find, keep
from memory.facts.facts import Fact, RememberResult, remember, valid_of
from memory.models import Memory
from memory.owner import Owner
from tests.fixtures.personas import Persona

pytestmark = pytest.mark.django_db


class Scripted:
    """A model that gives one answer and keeps what it was asked."""

    profile = ModelProfile("scripted")

    def __init__(self, answer: Any) -> None:
        self.answer = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
        self.asked: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyPart, None]:
        self.asked.append(request)
        for start in range(0, len(self.answer), 20):
            yield TextChunk(self.answer[start : start + 20])
        yield ReplyEnd("stop", Usage(100, 20))

    @property
    def question(self) -> str:
        return str(self.asked[0].messages[-1]["content"])


def facts(*decisions: dict[str, Any]) -> dict[str, Any]:
    return {"facts": list(decisions)}


def embed(texts: Sequence[str]) -> Any:
    return asyncio.run(OfflineEmbedder().embed(texts))


@pytest.fixture
def owner(alice: Persona) -> Owner:
    return Owner.of(alice.principal)


@pytest.fixture
def said() -> list[ConversationText]:
    return [
        ConversationText(uuid4(), True, "I moved to Oslo last week. What should I see?"),
        ConversationText(uuid4(), False, "Visit the opera house. You also like opera."),
    ]


def run(
    owner: Owner, said: Sequence[ConversationText], model: Scripted | None, **fields: Any
) -> Any:
    assistant_id = fields.pop("assistant_id", None)
    fields = {"embed": embed} | fields
    extractor = Extractor(model=model, embedding_model_id=UUID(int=7), **fields)
    found = find(owner, said, extractor=extractor, assistant_id=assistant_id)
    kept = [keep(owner, learnt) for learnt in found]
    return [(memory.content, outcome) for memory, outcome in kept]


def test_a_fact_is_kept_with_its_evidence_and_confidence(owner, said):
    model = Scripted(
        facts(
            {
                "action": "add",
                "content": "The user lives in Oslo",
                "evidence": [1],
                "confidence": 0.9,
            }
        )
    )
    calls: list[ExtractionCall] = []
    kept = run(owner, said, model, on_call=calls.append)
    assert kept == [("The user lives in Oslo", RememberResult.ADDED)]
    memory = valid_of(owner).get()
    assert memory.evidence == [said[0].id]
    assert memory.confidence == 0.9
    assert memory.embedding_model_id == UUID(int=7)
    assert [(call.usage, call.outcome) for call in calls] == [(Usage(100, 20), "ok")]


def test_the_model_sees_what_is_known_and_what_was_said_and_nothing_else(owner, said):
    remember(owner, Fact("The user lives in Rome"))
    model = Scripted(facts())
    run(owner, said, model)
    assert "1. The user lives in Rome" in model.question
    assert "1. User: I moved to Oslo" in model.question
    assert "2. Assistant: Visit the opera" in model.question
    assert model.asked[0].response_format == {"type": "json_object"}


def test_a_contradiction_supersedes_the_fact_it_names(owner, said):
    old, _ = remember(owner, Fact("The user lives in Rome"))
    model = Scripted(
        facts(
            {
                "action": "supersede",
                "memory": 1,
                "content": "The user lives in Oslo",
                "evidence": [1],
            }
        )
    )
    assert run(owner, said, model) == [("The user lives in Oslo", RememberResult.SUPERSEDED)]
    old.refresh_from_db()
    assert old.superseded_by == valid_of(owner).get()


@pytest.mark.parametrize(
    "decision",
    [
        {"action": "add", "content": "The user likes opera", "evidence": [2]},
        {"action": "add", "content": "The user likes opera", "evidence": [1]},
        {"action": "add", "content": "The user moved to Rome", "evidence": [1]},
        {"action": "add", "content": "The user never moved to Oslo", "evidence": [1]},
        {"action": "add", "content": "The user moved to Oslo 7 weeks ago", "evidence": [1]},
        {"action": "add", "content": "The user likes opera", "evidence": []},
        {"action": "add", "content": "The user likes opera", "evidence": [99, 0, -1]},
        {"action": "none", "content": "The user likes opera", "evidence": [1]},
        {"action": "add", "content": "  ", "evidence": [1]},
        {"action": "add", "content": "Maybe", "evidence": [1], "confidence": 0.2},
    ],
    ids=[
        "the assistant's words",
        "the assistant's words as the user's",
        "another word",
        "a denial",
        "a number",
        "no evidence",
        "no such message",
        "none",
        "empty",
        "unsure",
    ],
)
def test_what_the_user_did_not_say_is_dropped(owner, said, decision):
    assert run(owner, said, Scripted(facts(decision))) == []
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    "answer",
    ["", "I found nothing.", "{", '{"facts": 3}', '{"facts": [{"evidence": "x"}]}', "[]", "null"],
)
def test_an_answer_that_is_no_such_json_decides_nothing(owner, said, answer):
    assert run(owner, said, Scripted(answer)) == []


def test_json_in_a_fence_is_read(owner, said):
    answer = '```json\n{"facts": [{"content": "The user lives in Oslo", "evidence": [1]}]}\n```'
    assert run(owner, said, Scripted(answer)) == [("The user lives in Oslo", RememberResult.ADDED)]


def test_a_number_of_no_memory_replaces_nothing(owner, said):
    remember(owner, Fact("The user likes tea"))
    decision = {
        "action": "update",
        "memory": 12,
        "content": "The user lives in Oslo",
        "evidence": [1],
    }
    assert run(owner, said, Scripted(facts(decision))) == [
        ("The user lives in Oslo", RememberResult.ADDED)
    ]


def test_one_decision_of_another_form_spoils_no_other(owner, said):
    decisions = facts(
        {"content": "x" * 3_000, "evidence": [1]},
        {"content": "Surely", "evidence": [1], "confidence": 7},
        {"content": "\0", "evidence": [1]},
        {"content": "The user lives in Oslo", "evidence": [1]},
    )
    assert run(owner, said, Scripted(decisions)) == [
        ("The user lives in Oslo", RememberResult.ADDED)
    ]


class Refusing(Scripted):
    """Knows no JSON mode."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyPart, None]:
        if request.response_format is not None:
            raise ProviderError("provider_rejected", "response_format is not supported")
        async for part in super().stream(request):
            yield part


def test_a_provider_without_json_mode_is_asked_again_without_it(owner, said):
    calls: list[ExtractionCall] = []
    model = Refusing(facts({"content": "The user lives in Oslo", "evidence": [1]}))
    kept = run(owner, said, model, on_call=calls.append)
    assert kept == [("The user lives in Oslo", RememberResult.ADDED)]
    assert [call.outcome for call in calls] == ["provider_rejected", "ok"]


def test_without_an_embedder_it_is_kept_without_a_vector(owner, said):
    def away(texts: Sequence[str]) -> Any:
        raise ProviderError("provider_unavailable", "away")

    model = Scripted(facts({"content": "The user lives in Oslo", "evidence": [1]}))
    assert run(owner, said, model, embed=away) == [("The user lives in Oslo", RememberResult.ADDED)]
    assert valid_of(owner).get().embedding_model_id is None


def test_what_is_kept_for_one_assistant_is_shown_to_that_one_alone(owner, said):
    one = uuid4()
    remember(owner, Fact("The user's project is called Heron", assistant_id=one))
    for assistant_id, is_shown in ((one, True), (uuid4(), False), (None, False)):
        model = Scripted(facts())
        run(owner, said, model, assistant_id=assistant_id)
        assert ("Heron" in model.question) is is_shown


def test_what_takes_the_place_of_a_memory_takes_its_scope(owner, said):
    one = uuid4()
    remember(owner, Fact("The user lives in Rome", assistant_id=one))
    decision = {
        "action": "supersede",
        "memory": 1,
        "content": "The user lives in Oslo",
        "evidence": [1],
    }
    run(owner, said, Scripted(facts(decision)), assistant_id=one)
    memory = valid_of(owner).get()
    assert (memory.content, memory.assistant_id) == ("The user lives in Oslo", one)


def test_the_model_knows_when_it_was_said(owner):
    model = Scripted(facts())
    said = [
        ConversationText(uuid4(), True, "I fly to Oslo tomorrow", datetime(2026, 3, 1, tzinfo=UTC))
    ]
    run(owner, said, model)
    assert "1. [2026-03-01] User: I fly to Oslo tomorrow" in model.question


def test_what_is_known_is_shown_within_its_budget(owner, said):
    for number in range(40):
        remember(owner, Fact(f"Fact {number}: " + "long " * 300))
    model = Scripted(facts())
    run(owner, said, model)
    assert count_text(model.question.partition("</known>")[0]) < KNOWN_TOKENS + 100


def test_ten_decisions_are_enough(owner):
    ships = " ".join(f"I own ship number {n}." for n in range(1, 60))
    said = [ConversationText(uuid4(), True, ships)]
    many = [{"content": f"The user owns ship number {n}", "evidence": [1]} for n in range(1, 60)]
    assert len(run(owner, said, Scripted(facts(*many)))) == 10


def test_nobody_said_anything(owner):
    model = Scripted(facts())
    assert run(owner, [ConversationText(uuid4(), False, "Welcome!")], model) == []
    assert model.asked == []


def test_of_two_statements_said_together_the_later_one_holds(owner):
    said = [
        ConversationText(uuid4(), True, "Remember that I live in Paris"),
        ConversationText(uuid4(), True, "Remember that I live in Berlin"),
    ]
    assert run(owner, said, None)[-1] == ("I live in Berlin", RememberResult.SUPERSEDED)
    assert [memory.content for memory in valid_of(owner)] == ["I live in Berlin"]


def test_without_a_model_only_explicit_statements_are_kept(owner):
    said = [
        ConversationText(
            uuid4(), True, "Remember that my cat is called Biscuit. I also have a dog."
        ),
        ConversationText(uuid4(), False, "Remember that I am an assistant."),
        ConversationText(uuid4(), True, "记住我对花生过敏。"),
    ]
    assert run(owner, said, None) == [
        ("my cat is called Biscuit", RememberResult.ADDED),
        ("我对花生过敏", RememberResult.ADDED),
    ]
    assert valid_of(owner).get(content__startswith="my cat").evidence == [said[0].id]


def test_without_a_model_a_newer_statement_about_the_same_takes_its_place(owner):
    for colour in ("blue", "green"):
        run(
            owner,
            [ConversationText(uuid4(), True, f"Remember that my favourite colour is {colour}.")],
            None,
        )
    assert valid_of(owner).get().content == "my favourite colour is green"
    assert Memory.objects.count() == 2
