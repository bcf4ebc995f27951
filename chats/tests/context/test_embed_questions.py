"""The question's vector: it is fetched beside other reads, and serves a later request if it comes late."""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pytest

from amber.lib.workers import thread_bridge
from chats.context import gathering, question_embedding
from chats.context.lookups import RecallRequest
from chats.context.question_embedding import PendingEmbedding
from chats.context.tail import read_tail
from chats.digest.blocks import seal
from chats.models import ChatMessage
from chats.tests.rows import converse, new_assistant, new_chat
from chats.tests.runs import ask, ask_in, assert_stored_is_what_was_streamed, marker, run
from engine.events import TurnStatus
from engine.provider.faults import fault
from engine.provider.model import Usage
from memory.facts.facts import EmbeddedText, Fact, remember
from memory.owner import Owner
from memory.recall import calibration
from memory.recall.floors import NearnessScale
from providers.models import EmbeddingModel, Provider, UsageRecord
from tests.fixtures.personas import Persona
from tools.calling.registry import register_tool

pytestmark = pytest.mark.django_db(transaction=True)

DIMENSIONS = 8
FACT = "The user keeps bees in Kent"


class SlowEmbedder:
    """Embeds every text alike, after `seconds`; keeps when it was asked, and whether it was cut off."""

    model_id, dimensions = "slow", DIMENSIONS

    def __init__(self) -> None:
        self.seconds = 0.0
        self.error: Exception | None = None
        self.asked: list[str] = []
        self.was_cut_off = False
        self.begun, self.answered = threading.Event(), threading.Event()

    def __call__(self, row: EmbeddingModel, *, on_usage: Any, **_: Any) -> "SlowEmbedder":
        self._on_usage = on_usage
        return self

    async def embed(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        self.begun.set()
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.was_cut_off = True
            raise
        if self.error is not None:
            raise self.error
        self._on_usage(Usage(prompt_tokens=7))
        self.answered.set()
        return np.eye(1, DIMENSIONS, dtype=np.float32).repeat(len(texts), axis=0)


@pytest.fixture(autouse=True)
def only_our_tools(monkeypatch):
    monkeypatch.setattr("tools.calling.registry._tools", {})


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> SlowEmbedder:
    slow = SlowEmbedder()
    monkeypatch.setattr("providers.registry.engine_embedder", slow)
    monkeypatch.setattr(question_embedding, "EMBEDDING_SECONDS", 0.2)
    return slow


@pytest.fixture
def row(embedder: SlowEmbedder) -> EmbeddingModel:
    provider = Provider.objects.create(name="Remote", base_url="http://127.0.0.1:9/v1")
    return EmbeddingModel.objects.create(
        provider=provider, alias="slow", upstream_id="slow", dimensions=DIMENSIONS, default=True
    )


@pytest.fixture
def known(alice: Persona, row: EmbeddingModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory that only its vector finds, by any question."""
    vector = np.eye(1, DIMENSIONS, dtype=np.float32)[0]
    remember(Owner.of(alice.principal), Fact(FACT), embedded=EmbeddedText(vector, row.pk))
    scales = {"latin": NearnessScale(0.1, 0.5)}
    monkeypatch.setattr(calibration, "_read", {row.pk: (time.monotonic() + 600, scales)})


def wanted_of(row: EmbeddingModel, question: str = "Who am I to the bees?") -> RecallRequest:
    return RecallRequest(question=question, embedding_model=row)


def wait(pending: PendingEmbedding, row: EmbeddingModel) -> Any:
    return thread_bridge.run_on_loop(lambda _: pending.wait(wanted_of(row)))


def test_a_vector_in_time_has_no_problem(row, embedder):
    pending = PendingEmbedding()
    found = wait(pending, row)
    assert list(found.vectors) == [row.pk]
    assert (found.problem, found.late_ms, pending.is_late) == ("", None, False)
    assert [usage.prompt_tokens for _, usage in found.usages] == [7]


def test_what_was_used_is_told_once(row, embedder):
    pending = PendingEmbedding()
    wait(pending, row)
    again = wait(pending, row)
    assert (list(again.vectors), list(again.usages)) == ([row.pk], [])
    assert len(embedder.asked) == 1


def test_a_late_vector_is_kept_with_the_time_it_was_late(row, embedder):
    embedder.seconds = 0.6
    pending = PendingEmbedding()
    early = wait(pending, row)
    assert (dict(early.vectors), early.problem, pending.is_late) == ({}, "provider_timeout", True)
    late = thread_bridge.run_on_loop(lambda _: pending.wait_for_late())
    assert (list(late.vectors), late.problem) == ([row.pk], "")
    assert 300 <= early.late_ms <= 5_000


def test_an_embedder_that_fails_is_a_problem_and_no_error(row, embedder):
    embedder.error = fault("provider_unavailable")
    found = wait(PendingEmbedding(), row)
    assert (dict(found.vectors), found.problem) == ({}, "provider_unavailable")


def test_another_question_is_asked_anew(row, embedder):
    pending = PendingEmbedding()
    pending.begin("Who?", [row])
    wait(pending, row)
    assert embedder.asked == ["Who?", wanted_of(row).question]


def test_the_embedder_is_asked_before_the_tail_is_read(
    alice, new_model, known, embedder, monkeypatch
):
    new_model()
    begun: list[bool] = []

    def watched(turn, blocks):
        begun.append(embedder.begun.wait(5))
        return read_tail(turn, blocks)

    monkeypatch.setattr(gathering, "read_tail", watched)
    turn = ask(alice, content="What do I keep in Kent?")
    assert run(turn) == TurnStatus.COMPLETED
    assert begun == [True]
    assert [m["id"] for m in turn.manifest["memories"]]
    assert turn.manifest["question_embedded_late_ms"] is None


def test_in_a_long_chat_the_embedder_is_asked_before_the_tail_is_read(
    alice, new_model, row, embedder, monkeypatch, settings
):
    settings.AMBER_BLOCK_TOKENS, settings.AMBER_CONTEXT_TAIL_TOKENS = 50, 200
    new_model()
    chat = new_chat(alice, assistant=new_assistant(alice))
    converse(chat, *(f"The bees of hive {n} are out, the lime trees flower." for n in range(40)))
    assert seal(chat.pk)
    embedder.asked.clear()
    embedder.begun.clear()
    begun: list[bool] = []

    def watched(turn, blocks):
        begun.append(embedder.begun.wait(5))
        return read_tail(turn, blocks)

    monkeypatch.setattr(gathering, "read_tail", watched)
    chat.refresh_from_db()
    turn = ask_in(chat, alice, "Which trees flower near the hive?")
    assert run(turn) == TurnStatus.COMPLETED
    assert begun == [True]
    assert embedder.asked == ["Which trees flower near the hive?"]


def test_small_talk_is_not_embedded(alice, new_model, known, embedder):
    new_model()
    turn = ask(alice, content="Hello!")
    assert run(turn) == TurnStatus.COMPLETED
    assert embedder.asked == []


def test_a_late_vector_serves_the_request_after_a_tool(
    alice, new_model, known, embedder, fake_provider
):
    @register_tool
    def dawdle(what: Annotated[str, "What"]) -> str:
        """Waits until the embedder has answered."""
        assert embedder.answered.wait(10)
        time.sleep(0.3)
        return "Done."

    new_model()
    embedder.seconds = 0.6
    turn = ask(
        alice, content=f"What am I famous for? {marker('dawdle', {'what': 'a late vector'})}"
    )
    assert run(turn) == TurnStatus.COMPLETED
    first, second = fake_provider.requests(contains="What am I famous for?")
    assert FACT not in str(first)
    assert FACT in str(second)
    assert turn.manifest["question_not_embedded"] is None
    assert 300 <= turn.manifest["question_embedded_late_ms"] <= 9_000
    assert len(embedder.asked) == 1
    assert UsageRecord.objects.filter(kind="embedding", prompt_tokens=7).count() == 1
    roles = (
        ChatMessage.objects.filter(turn=turn).order_by("position").values_list("role", flat=True)
    )
    assert list(roles) == ["human", "tool_call", "tool", "assistant"]
    assert_stored_is_what_was_streamed(turn)


def test_an_answer_without_tools_does_not_wait_for_a_late_vector(alice, new_model, known, embedder):
    new_model()
    embedder.seconds = 20.0
    began = time.monotonic()
    turn = ask(alice, content="What am I known for?")
    assert run(turn) == TurnStatus.COMPLETED
    assert time.monotonic() - began < 10
    assert turn.manifest["question_not_embedded"] == "provider_timeout"
    assert turn.manifest["memories"] == []
    assert embedder.was_cut_off
