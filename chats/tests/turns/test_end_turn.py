"""Test turns that do not end well: stopped, released, failed, cut off, taken over, crashed."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from amber.lib import redis as amber_redis
from amber.lib.workers.leases import StopReason
from chats import services
from chats.call_services import forget_turn
from chats.events.stream import events_key
from chats.models import Chat, ChatMessage, Turn
from chats.running import resumption
from chats.running.stopping import running_turns
from chats.running.writer import TurnWriter
from chats.tests.event_streams import stream_of
from chats.tests.rows import expire, new_assistant, path_of, take_over
from chats.tests.runs import (
    ask,
    ask_in,
    assert_stored_is_what_was_streamed,
    marker,
    names_of,
    run,
    running,
    seen_of,
    text_of,
)
from chats.turns import sweep
from chats.turns.account import TurnAccount
from engine.events import TurnStatus
from providers.models import UsageRecord
from tests.fakes.answers import answer_text
from tests.fixtures.personas import Persona
from tools.calling.registry import register_tool

pytestmark = pytest.mark.django_db(transaction=True)

THREE = answer_text(3)
"""What comes in front of a fault that strikes midway."""
SIX = "[[fake tokens=6]]"


@pytest.fixture(autouse=True)
def only_our_tools(monkeypatch):
    monkeypatch.setattr("tools.calling.registry._tools", {})


@pytest.fixture(autouse=True)
def without_patience(settings):
    settings.AMBER_PROVIDER_RETRIES = 0


def wait_in(tool_runs: Callable[[], object]) -> None:
    """Register a tool that does what the test wants while its turn runs."""

    @register_tool
    def act() -> str:
        """Acts."""
        tool_runs()
        return "done"


def ask_stateless(persona: Persona, model: str) -> Turn:
    assistant = new_assistant(persona, model=model)
    question = {"role": "human", "content": "Hi"}
    return services.start_stateless_turn(
        persona.principal, assistant=assistant, messages=[question]
    )


def call_rows() -> list[str]:
    return [m.role for m in ChatMessage.objects.order_by("position")]


# -- Stopped -----------------------------------------------------------------------------------


def test_a_cancelled_answer_keeps_what_was_shown(alice, new_model, fake_provider):
    new_model("fake-hang-mid")
    turn = ask(alice, "fake-hang-mid")
    with running(turn) as this:
        this.wait_for(lambda: text_of(turn) == THREE)
        this.stop(StopReason.CANCELLED)
    assert this.status == [TurnStatus.CANCELLED]
    assert path_of(turn.chat) == [("human", "Hi"), ("assistant", THREE)]
    assert (turn.status, turn.error, turn.partial_text) == ("cancelled", None, "")
    assert names_of(turn)[-2:] == ["message.stored", "turn.cancelled"]
    assert_stored_is_what_was_streamed(turn)
    this.wait_for(lambda: fake_provider.stats()["active"] == 0)
    row = UsageRecord.objects.get()
    assert (row.outcome, row.estimated) == ("cancelled", True)
    assert row.completion_tokens > 0


def test_what_was_sent_is_paid_for_though_nothing_of_the_answer_was_shown(
    alice, new_model, monkeypatch
):
    """The model had begun: with thoughts that are hidden here, or with the arguments of a call."""
    new_model("fake-deepseek-hang")
    turn = ask(alice, "fake-deepseek-hang", hide_reasoning=True)
    begun: list[object] = []
    note = TurnAccount.note_answer
    monkeypatch.setattr(TurnAccount, "note_answer", lambda self: begun.append(note(self)))
    with running(turn) as this:
        this.wait_for(lambda: begun)
        this.stop(StopReason.CANCELLED)
    assert (turn.status, text_of(turn)) == ("cancelled", "")
    row = UsageRecord.objects.get()
    assert (row.outcome, row.estimated, row.completion_tokens) == ("cancelled", True, 0)
    assert row.prompt_tokens > 0
    assert turn.usage["prompt_tokens"] == row.prompt_tokens


def test_cancelling_over_rest_is_heard_by_the_lease_renewal(alice, new_model):
    """The row says it, even if the announcement was missed."""
    new_model("fake-hang-mid")
    turn = ask(alice, "fake-hang-mid")
    with running(turn) as this:
        this.wait_for_text()
        assert services.cancel_turn(Turn.objects.get()).status == "running"
        assert Turn.objects.get().cancel_requested_at is not None
        this.stop(StopReason.CANCELLED)
    assert turn.status == "cancelled"


def test_a_silent_provider_is_cancelled_without_a_message(alice, new_model, fake_provider):
    new_model("fake-hang-first")
    turn = ask(alice, "fake-hang-first")
    with running(turn) as this:
        this.wait_for(lambda: fake_provider.stats()["active"] == 1)
        this.stop(StopReason.CANCELLED)
    assert path_of(turn.chat) == [("human", "Hi")]
    assert names_of(turn) == ["turn.started", "turn.cancelled"]
    assert_stored_is_what_was_streamed(turn)
    this.wait_for(lambda: fake_provider.stats()["active"] == 0)


def test_stopping_what_does_not_run_here_does_nothing(alice):
    running_turns.stop(ask(alice).pk, StopReason.CANCELLED)
    assert running_turns.ids() == []


def test_a_released_turn_waits_for_another_worker(alice, new_model):
    new_model("fake-hang-mid-once")
    turn = ask(alice, "fake-hang-mid-once", content=f"release me {SIX}")
    with running(turn) as this:
        this.wait_for(lambda: text_of(turn) == THREE)
        this.stop(StopReason.RELEASED)
    assert this.status == [TurnStatus.QUEUED]
    assert (turn.status, turn.attempt, turn.worker) == ("queued", 0, "")
    assert turn.partial_text == THREE
    assert seen_of(turn).ended is None
    assert run(turn, "w2") == TurnStatus.COMPLETED
    assert turn.attempt == 1, "a release is not counted"
    assert path_of(turn.chat)[1:] == [("assistant", answer_text(6))]
    assert "turn.restarted" in names_of(turn)
    assert_stored_is_what_was_streamed(turn)


# -- Failed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "code", "retryable"),
    [
        ("fake-500", "provider_unavailable", True),
        ("fake-429", "provider_rate_limited", True),
        ("fake-401", "provider_auth", False),
        ("fake-400", "provider_rejected", False),
        ("fake-context-too-long", "context_too_long", False),
        ("fake-malformed-first", "provider_malformed", True),
        ("fake-no-finish-first", "provider_lost", True),
    ],
)
def test_a_failure_before_any_text_fails_the_turn(alice, new_model, model, code, retryable):
    new_model(model)
    turn = ask(alice, model)
    assert run(turn) == TurnStatus.FAILED
    assert turn.error["code"] == code
    assert turn.error["retryable"] is retryable
    assert turn.error["message"]
    assert path_of(turn.chat) == [("human", "Hi")]
    assert names_of(turn) == ["turn.started", "turn.failed"]
    assert_stored_is_what_was_streamed(turn)
    assert UsageRecord.objects.get().outcome == code
    assert ask_in(turn.chat, alice).status == "queued", "the chat goes on"


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("fake-cut-mid", "provider_lost"),
        ("fake-malformed-mid", "provider_malformed"),
        ("fake-no-finish", "provider_lost"),
    ],
)
def test_a_failure_after_text_keeps_it(alice, new_model, model, code):
    new_model(model)
    turn = ask(alice, model, content=SIX)
    assert run(turn) == TurnStatus.INCOMPLETE
    assert turn.error["code"] == code
    (_, (role, text)) = path_of(turn.chat)
    assert role == "assistant"
    assert text.startswith(THREE)
    assert names_of(turn)[-2:] == ["message.stored", "turn.incomplete"]
    assert_stored_is_what_was_streamed(turn)
    assert UsageRecord.objects.get().outcome == code


def test_an_answer_that_is_too_long_is_kept_as_far_as_it_came(alice, new_model, settings):
    settings.AMBER_MAX_REPLY_CHARS = 1_000
    new_model()
    turn = ask(alice, content="[[fake tokens=2000]]")
    assert run(turn) == TurnStatus.INCOMPLETE
    assert (turn.error["code"], turn.error["retryable"]) == ("reply_too_long", False)
    assert path_of(turn.chat)[1] == ("assistant", answer_text(2000)[:1_000])
    assert_stored_is_what_was_streamed(turn)
    record = UsageRecord.objects.get()
    assert record.outcome == "reply_too_long"
    assert record.completion_tokens > 100, "what it cost is estimated"
    assert ask_in(turn.chat, alice).status == "queued", "the chat goes on"


def test_the_deadline_of_the_whole_turn_ends_it(alice, new_model, settings):
    settings.AMBER_TURN_SECONDS = 1
    new_model("fake-hang-mid")
    turn = ask(alice, "fake-hang-mid")
    assert run(turn) == TurnStatus.INCOMPLETE
    assert turn.error["code"] == "provider_timeout"
    assert path_of(turn.chat)[1] == ("assistant", THREE)
    assert_stored_is_what_was_streamed(turn)


def test_the_deadline_ends_a_tool_that_hangs_too(alice, new_model, settings):
    @register_tool
    async def hang() -> str:
        """Hangs."""
        await asyncio.Event().wait()
        return ""

    settings.AMBER_TURN_SECONDS = 1
    new_model()
    turn = ask(alice, content=marker("hang", {}))
    assert run(turn) == TurnStatus.FAILED
    assert turn.error["code"] == "provider_timeout"
    assert_stored_is_what_was_streamed(turn)


def test_without_a_model_it_fails_with_the_reason(alice):
    turn = ask(alice)
    assert run(turn) == TurnStatus.FAILED
    assert turn.error["code"] == "unavailable"
    assert names_of(turn) == ["turn.started", "turn.failed"]


def test_a_question_the_model_cannot_hold_fails(alice, new_model):
    new_model("fake-model", context_tokens=600, max_output_tokens=100)
    turn = ask(alice, content="many different words " * 400)
    assert run(turn) == TurnStatus.FAILED
    assert (turn.error["code"], turn.error["retryable"]) == ("context_too_long", False)


def test_our_own_faults_fail_the_turn_without_telling_secrets(alice, new_model, monkeypatch):
    def break_down(*_: Any) -> None:
        raise RuntimeError("the password is 1234")

    monkeypatch.setattr("chats.context.gathering.compose", break_down)
    new_model()
    turn = ask(alice)
    assert run(turn) == TurnStatus.FAILED
    assert turn.error["code"] == "internal"
    assert "1234" not in str(turn.error)


# -- Taken over --------------------------------------------------------------------------------


def test_a_zombie_writes_nothing(alice, new_model):
    """Another worker took over while a call ran: its result is not stored here."""
    new_model()
    turn = ask(alice, content=marker("act", {}))
    wait_in(lambda: take_over(turn))
    assert run(turn) is None
    assert call_rows() == ["human", "tool_call"]
    assert (turn.status, turn.worker, turn.step, turn.fence) == ("running", "w2", 1, 2)
    assert seen_of(turn).ended is None


def test_a_zombie_in_mid_answer_ends_nothing(alice, new_model):
    new_model("fake-hang-mid")
    turn = ask(alice, "fake-hang-mid")
    with running(turn) as this:
        this.wait_for_text()
        take_over(turn)
        this.stop(StopReason.CANCELLED)
    assert this.status == [None]
    assert turn.status == "running"
    assert path_of(turn.chat) == [("human", "Hi")]
    assert seen_of(turn).ended is None


def test_a_refused_event_means_that_another_has_taken_over(alice, new_model):
    new_model("fake-hang-first")
    turn = ask(alice, "fake-hang-first")
    key = events_key(turn.organization_id, turn.pk)
    amber_redis.client().xadd(key, {"e": "turn.started", "d": "{}"}, id="1000001-0")
    with running(turn) as this:
        pass
    assert this.status == [None]
    assert path_of(turn.chat) == [("human", "Hi")]


def test_renewal_between_the_last_commit_and_its_events_takes_nothing(
    alice, new_model, monkeypatch
):
    """The row is nobody's then, as a lost one is."""
    new_model()
    turn = ask(alice)
    real = TurnWriter.store_reply

    def store_and_renew(self: TurnWriter, *given: Any) -> None:
        real(self, *given)
        running_turns.renew("w1")

    monkeypatch.setattr(TurnWriter, "store_reply", store_and_renew)
    assert run(turn) == TurnStatus.COMPLETED
    assert names_of(turn)[-2:] == ["message.stored", "turn.completed"]
    assert_stored_is_what_was_streamed(turn)


@pytest.mark.parametrize("in_chat", [True, False])
def test_who_deletes_what_is_being_answered_pays_for_it(alice, new_model, in_chat):
    """Else a budget would be none: one reads the answer, and deletes it before its end."""
    new_model("fake-hang-mid")
    asking: Any = ask if in_chat else ask_stateless
    turn = asking(alice, "fake-hang-mid")
    with running(turn) as this:
        this.wait_for(lambda: text_of(turn) == THREE)
        if in_chat:
            services.delete_chat(turn.chat)
        else:
            forget_turn(turn)
        this.stop(StopReason.FENCED)
    assert this.status == [None]
    row = UsageRecord.objects.get()
    assert (row.outcome, row.estimated, row.turn_id) == ("cancelled", True, turn.pk)
    assert row.prompt_tokens and row.completion_tokens


def test_what_another_worker_has_is_not_recorded_by_the_one_that_lost_it(alice, new_model):
    new_model("fake-hang-mid")
    turn = ask(alice, "fake-hang-mid")
    with running(turn) as this:
        this.wait_for_text()
        take_over(turn)
        this.stop(StopReason.FENCED)
    assert this.status == [None]
    assert not UsageRecord.objects.exists()


def test_a_deleted_chat_stops_its_turn(alice, new_model):
    new_model("fake-hang-mid")
    turn = ask(alice, "fake-hang-mid")
    with running(turn) as this:
        this.wait_for_text()
        services.delete_chat(turn.chat)
        this.stop(StopReason.FENCED)
    assert this.status == [None]
    assert not Chat.objects.exists()
    assert not ChatMessage.objects.exists()


def test_what_a_running_turn_stores_leaves_its_lease_to_renewal(alice, new_model):
    """Else a step stored after a call of more seconds than a lease would end the lease."""
    wait_in(lambda: Turn.objects.renew([turn.pk], worker="w1", lease_seconds=3600))
    new_model()
    turn = ask(alice, content="[[fake call=act tokens=60 itl=20]]")
    with running(turn) as this:
        this.wait_for_text()
        stored = Turn.objects.get(pk=turn.pk)
        assert (stored.step, stored.status) == (1, "running")
        assert stored.lease_until and stored.lease_until - timezone.now() > timedelta(minutes=50)
        this.stop(StopReason.CANCELLED)
    assert (turn.status, turn.lease_until) == ("cancelled", None)


# -- Crashed -----------------------------------------------------------------------------------


def crash_in_a_call(alice: Any, *, idempotent: bool) -> tuple[Any, list[int]]:
    """Return a turn whose worker died after the call was made, before its result was stored."""
    made: list[int] = []

    @register_tool(idempotent=idempotent)
    def count() -> str:
        """Counts."""
        made.append(1)
        if len(made) == 1:
            take_over(turn)
            expire(turn)
        return f"called {len(made)} times"

    turn = ask(alice, content=marker("count", {}))
    assert run(turn) is None
    assert call_rows() == ["human", "tool_call"]
    assert sweep.sweep_turns() == [turn.pk]
    turn.refresh_from_db()
    assert turn.status == "queued"
    return turn, made


def test_a_safe_call_is_made_again(alice, new_model):
    new_model()
    turn, made = crash_in_a_call(alice, idempotent=True)
    assert run(turn, "w3") == TurnStatus.COMPLETED
    assert len(made) == 2
    assert ChatMessage.objects.get(role="tool").content == "called 2 times"
    assert call_rows() == ["human", "tool_call", "tool", "assistant"]
    assert_stored_is_what_was_streamed(turn)


def test_a_call_that_may_do_harm_is_reported_and_not_repeated(alice, new_model):
    new_model()
    turn, made = crash_in_a_call(alice, idempotent=False)
    assert run(turn, "w3") == TurnStatus.COMPLETED
    assert len(made) == 1
    assert ChatMessage.objects.get(role="tool").content == resumption.UNKNOWN_OUTCOME
    assert call_rows() == ["human", "tool_call", "tool", "assistant"]
    finished = [e for e in stream_of(turn) if e["event"] == "tool.finished"]
    assert finished[-1]["ok"] is False
    assert_stored_is_what_was_streamed(turn)


def test_a_finished_call_is_not_made_again(alice, new_model):
    made: list[int] = []

    @register_tool(idempotent=True)
    def count() -> str:
        """Counts."""
        made.append(1)
        return "once"

    new_model("fake-hang-mid-once")
    turn = ask(alice, "fake-hang-mid-once", content=f"finished {marker('count', {})}")
    with running(turn) as this:
        this.wait_for(lambda: text_of(turn) == THREE)
        this.stop(StopReason.FENCED)
    expire(turn)
    assert sweep.sweep_turns() == [turn.pk]
    assert run(turn, "w2") == TurnStatus.COMPLETED
    assert made == [1]
    assert call_rows() == ["human", "tool_call", "tool", "assistant"]
    assert turn.usage["total_tokens"] == sum(
        row.prompt_tokens + row.completion_tokens for row in UsageRecord.objects.all()
    )
    assert_stored_is_what_was_streamed(turn)


def test_a_crash_in_mid_answer_takes_the_half_back(alice, new_model):
    new_model("fake-hang-mid-once")
    turn = ask(alice, "fake-hang-mid-once", content=f"crash {SIX}")
    with running(turn) as this:
        this.wait_for(lambda: text_of(turn) == THREE)
        this.stop(StopReason.FENCED)
    expire(turn)
    assert sweep.sweep_turns() == [turn.pk]
    assert run(turn, "w2") == TurnStatus.COMPLETED
    assert turn.attempt == 2
    assert path_of(turn.chat)[1:] == [("assistant", answer_text(6))]
    restarted = next(e for e in stream_of(turn) if e["event"] == "turn.restarted")
    assert (restarted["attempt"], restarted["step"], restarted["seq"]) == (2, 1, 1_000_001)
    assert_stored_is_what_was_streamed(turn)


def test_shown_text_is_saved_while_the_answer_comes(alice, new_model, monkeypatch):
    monkeypatch.setattr("chats.running.partial_text.PARTIAL_SECONDS", 0.05)
    new_model("fake-hang-mid")
    turn = ask(alice, "fake-hang-mid")
    with running(turn) as this:
        this.wait_for(lambda: Turn.objects.get().partial_text == THREE)
        row = Turn.objects.get()
        this.wait_for(lambda: stream_of(turn)[-1]["seq"] == row.seq)
        this.stop(StopReason.FENCED)
    assert seen_of(turn).text == {1: THREE}
