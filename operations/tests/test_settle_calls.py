"""Test the ledger of turns whose calls did not end by themselves: lost, released, cancelled."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from amber.lib.workers.leases import StopReason
from assistants.models import Assistant
from chats import services
from chats.models import Turn
from chats.tests.runs import ask, marker, run, running, text_of
from chats.turns import sweep
from engine import loop
from engine.events import TurnStatus
from providers.models import LanguageModel, UsageRecord
from tests.fakes.answers import answer_text
from tools.calling.registry import register_tool

pytestmark = pytest.mark.django_db(transaction=True)

THREE = answer_text(3)


@pytest.fixture(autouse=True)
def only_our_tools(monkeypatch):
    monkeypatch.setattr("tools.calling.registry._tools", {})
    monkeypatch.setattr("chats.running.partial_text.PARTIAL_SECONDS", 0.05)


def expire(turn: Any) -> None:
    Turn.objects.filter(pk=turn.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def lose(turn: Any) -> None:
    """Let the worker die once three words are stored; the sweep finds the turn."""
    with running(turn) as this:
        this.wait_for(lambda: Turn.objects.get(pk=turn.pk).partial_text == THREE)
        this.stop(StopReason.FENCED)
    expire(turn)
    sweep.sweep_turns()
    turn.refresh_from_db()


def outcomes() -> list[str]:
    return [row.outcome for row in UsageRecord.objects.order_by("created_at")]


def assert_totals_agree(turn: Any) -> None:
    turn.refresh_from_db()
    total = sum(r.prompt_tokens + r.completion_tokens for r in UsageRecord.objects.all())
    assert turn.usage["total_tokens"] == total
    assert Assistant.objects.get().total_token_usage == total


def test_a_call_whose_worker_died_is_estimated_by_what_was_sent_and_shown(alice, new_model):
    new_model("fake-hang-mid-once")
    turn = ask(alice, "fake-hang-mid-once", content="crash [[fake tokens=6]]" + " word" * 200)
    lose(turn)
    lost = UsageRecord.objects.get()
    assert (lost.outcome, lost.estimated, lost.turn_id) == ("lost", True, turn.pk)
    assert (lost.user, lost.assistant_id) == (alice.user, turn.assistant_id)
    assert_totals_agree(turn)

    assert run(turn, "w2") == TurnStatus.COMPLETED
    assert outcomes() == ["lost", "ok"]
    told = UsageRecord.objects.get(outcome="ok")
    assert 200 < lost.prompt_tokens < 250
    assert 0 < lost.completion_tokens < told.completion_tokens
    assert_totals_agree(turn)


def test_a_lost_call_has_its_models_price(alice, new_model):
    new_model("fake-hang-mid", price_in=1_000, price_out=2_000)
    turn = ask(alice, "fake-hang-mid")
    lose(turn)
    lost = UsageRecord.objects.get()
    assert lost.cost * 1_000 == lost.prompt_tokens + 2 * lost.completion_tokens > 0


def test_a_worker_that_died_before_it_wrote_anything_counts_as_having_asked(alice, new_model):
    new_model()
    turn = ask(alice, content="word " * 300)
    Turn.objects.claim(turn.pk, worker="dead", lease_seconds=20)
    expire(turn)
    assert sweep.sweep_turns() == [turn.pk]
    lost = UsageRecord.objects.get()
    assert lost.outcome == "lost"
    assert 300 < lost.prompt_tokens < 1_000
    assert lost.completion_tokens == 0
    assert_totals_agree(turn)


def test_a_stateless_turns_lost_call_is_recorded_too(alice, new_model):
    new_model(default=True)
    asked = [{"role": "human", "content": "word " * 300}]
    turn = services.start_stateless_turn(alice.principal, messages=asked)
    Turn.objects.claim(turn.pk, worker="dead", lease_seconds=20)
    expire(turn)
    assert sweep.sweep_turns() == [turn.pk]
    assert UsageRecord.objects.get().prompt_tokens > 300


def test_no_call_was_lost_while_tools_ran(alice, new_model):
    @register_tool(idempotent=True)
    def act() -> str:
        """Acts."""
        Turn.objects.filter(pk=turn.pk).update(worker="w2", fence=99)
        expire(turn)
        return "done"

    new_model()
    turn = ask(alice, content=marker("act", {}))
    assert run(turn) is None
    assert sweep.sweep_turns() == [turn.pk]
    assert outcomes() == ["ok"]


def test_a_later_step_that_is_lost_counts_what_the_tools_said(alice, new_model):
    @register_tool
    def read() -> str:
        """Reads."""
        return "word " * 300

    new_model("fake-hang-mid-once")
    turn = ask(alice, "fake-hang-mid-once", content=f"later {marker('read', {})}")
    lose(turn)
    first, lost = UsageRecord.objects.order_by("created_at")
    assert (first.outcome, lost.outcome) == ("ok", "lost")
    assert lost.prompt_tokens > 300
    assert_totals_agree(turn)


def test_a_turn_is_given_back_though_no_model_is_there_to_price_its_call(alice, new_model):
    new_model()
    turn = ask(alice)
    Turn.objects.claim(turn.pk, worker="dead", lease_seconds=20)
    expire(turn)
    LanguageModel.objects.update(enabled=False)
    assert sweep.sweep_turns() == [turn.pk]
    assert not UsageRecord.objects.exists()


def test_a_call_that_was_cut_off_by_a_shutdown_is_recorded(alice, new_model):
    new_model("fake-hang-mid")
    turn = ask(alice, "fake-hang-mid")
    with running(turn) as this:
        this.wait_for(lambda: text_of(turn) == THREE)
        this.stop(StopReason.RELEASED)
    assert turn.status == TurnStatus.QUEUED
    row = UsageRecord.objects.get()
    assert (row.outcome, row.estimated) == ("released", True)
    assert row.completion_tokens > 0
    assert_totals_agree(turn)


@pytest.fixture
def never_asked(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Keep turns from asking; return an event that is set once one is ready to."""
    is_ready = asyncio.Event()

    async def wait(*_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        is_ready.set()
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(loop, "run", wait)
    return is_ready


@pytest.mark.parametrize("reason", [StopReason.CANCELLED, StopReason.RELEASED])
def test_a_turn_that_is_stopped_before_it_asked_has_no_call(alice, new_model, never_asked, reason):
    new_model()
    turn = ask(alice)
    with running(turn) as this:
        this.wait_for(never_asked.is_set)
        this.stop(reason)
    assert turn.status in (TurnStatus.CANCELLED, TurnStatus.QUEUED)
    assert outcomes() == []


def test_a_turn_that_is_cancelled_while_the_provider_is_silent_has_one(
    alice, new_model, fake_provider
):
    new_model("fake-hang-first")
    turn = ask(alice, "fake-hang-first")
    with running(turn) as this:
        this.wait_for(lambda: fake_provider.stats()["active"] > 0)
        this.stop(StopReason.CANCELLED)
    assert turn.status == TurnStatus.CANCELLED
    assert outcomes() == ["cancelled"]
