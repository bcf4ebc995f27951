"""Extraction: what the model decides, what is dropped, and what is found without a model."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest

from engine.embedding import OfflineEmbedder
from engine.model import ModelProfile, ModelRequest, ReplyEnd, ReplyPart, TextChunk, Usage
from memory.extraction import Extractor, Said, extract
from memory.facts import Fact, Outcome, remember, valid_of
from memory.models import Memory
from memory.owner import Owner
from tests.personas import Persona

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
def said() -> list[Said]:
    return [
        Said(uuid4(), True, "I moved to Oslo last week. What should I see?"),
        Said(uuid4(), False, "Visit the opera house. You also like opera."),
    ]


def run(owner: Owner, said: Sequence[Said], model: Scripted | None, **fields: Any) -> Any:
    extractor = Extractor(model=model, embed=embed, embedding_model_id=UUID(int=7), **fields)
    return [
        (memory.content, outcome) for memory, outcome in extract(owner, said, extractor=extractor)
    ]


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
    used: list[Usage] = []
    kept = run(owner, said, model, on_usage=used.append)
    assert kept == [("The user lives in Oslo", Outcome.ADDED)]
    memory = valid_of(owner).get()
    assert memory.evidence == [said[0].id]
    assert memory.confidence == 0.9
    assert memory.embedding_model_id == UUID(int=7)
    assert used == [Usage(100, 20)]


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
    assert run(owner, said, model) == [("The user lives in Oslo", Outcome.SUPERSEDED)]
    old.refresh_from_db()
    assert old.superseded_by == valid_of(owner).get()


@pytest.mark.parametrize(
    "decision",
    [
        {"action": "add", "content": "The user likes opera", "evidence": [2]},
        {"action": "add", "content": "The user likes opera", "evidence": []},
        {"action": "add", "content": "The user likes opera", "evidence": [99, 0, -1]},
        {"action": "none", "content": "The user likes opera", "evidence": [1]},
        {"action": "add", "content": "  ", "evidence": [1]},
        {"action": "add", "content": "Maybe", "evidence": [1], "confidence": 0.2},
    ],
    ids=["the assistant's words", "no evidence", "no such message", "none", "empty", "unsure"],
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
    assert run(owner, said, Scripted(answer)) == [("The user lives in Oslo", Outcome.ADDED)]


def test_a_number_of_no_memory_replaces_nothing(owner, said):
    remember(owner, Fact("The user likes tea"))
    decision = {
        "action": "update",
        "memory": 12,
        "content": "The user lives in Oslo",
        "evidence": [1],
    }
    assert run(owner, said, Scripted(facts(decision))) == [
        ("The user lives in Oslo", Outcome.ADDED)
    ]


def test_ten_decisions_are_enough(owner, said):
    many = [{"content": f"The user owns ship number {n}", "evidence": [1]} for n in range(1, 60)]
    assert len(run(owner, said, Scripted(facts(*many)))) == 10


def test_nobody_said_anything(owner):
    model = Scripted(facts())
    assert run(owner, [Said(uuid4(), False, "Welcome!")], model) == []
    assert model.asked == []


def test_without_a_model_only_explicit_statements_are_kept(owner):
    said = [
        Said(uuid4(), True, "Remember that my cat is called Biscuit. I also have a dog."),
        Said(uuid4(), False, "Remember that I am an assistant."),
        Said(uuid4(), True, "记住我对花生过敏。"),
    ]
    assert run(owner, said, None) == [
        ("my cat is called Biscuit", Outcome.ADDED),
        ("我对花生过敏", Outcome.ADDED),
    ]
    assert valid_of(owner).get(content__startswith="my cat").evidence == [said[0].id]


def test_without_a_model_a_newer_statement_about_the_same_takes_its_place(owner):
    for colour in ("blue", "green"):
        run(owner, [Said(uuid4(), True, f"Remember that my favourite colour is {colour}.")], None)
    assert valid_of(owner).get().content == "my favourite colour is green"
    assert Memory.objects.count() == 2
