"""Postgres goes away in the middle of a turn: the answer is kept for it, and stored and counted once."""

from typing import Any

import pytest
from django.db import OperationalError, transaction

from amber.lib.workers.worker import this_worker
from chats.models import ChatMessage, Turn
from chats.running import runner
from chats.running.writer import TurnWriter
from chats.tasks import run_turn
from chats.tests.rows import expire
from chats.tests.runs import ask, assert_stored_is_what_was_streamed, marker, run
from chats.turns import sweep
from engine.events import TurnStatus
from providers.models import UsageRecord
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.django_db(transaction=True)

SIX = "[[fake tokens=6]]"
WRITES = ("before", "at the commit", "after the commit")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(runner, "STORE_PAUSE_SECONDS", 0.01)


@pytest.fixture
def break_write(monkeypatch):
    """Let the first so many tries of a write fail: before it, at its commit, or once it is committed."""

    def prepare(name: str, when: str, times: int = 1) -> list[str]:
        write, left = getattr(TurnWriter, name), [when] * times

        def try_it(writer: Any, *given: Any, **named: Any) -> None:
            if not left:
                write(writer, *given, **named)
                return
            left.pop()
            if when == "at the commit":
                with writer.account.undone_on_error(), transaction.atomic():
                    write(writer, *given, **named)
                    raise OperationalError("the connection is lost")
            if when == "after the commit":
                write(writer, *given, **named)
                writer.outbox = []
            raise OperationalError("the connection is lost")

        monkeypatch.setattr(TurnWriter, name, try_it)
        return left

    return prepare


@pytest.mark.parametrize("when", WRITES)
def test_an_answer_is_stored_and_counted_once(alice, new_model, break_write, when):
    new_model()
    turn = ask(alice, content=SIX)
    left = break_write("store_reply", when, times=1 if when == "after the commit" else 3)
    run(turn)
    assert left == []
    assert (turn.status, turn.attempt) == ("completed", 1)
    [answer] = ChatMessage.objects.filter(role="assistant")
    assert answer.content == answer_text(6)
    assert [record.outcome for record in UsageRecord.objects.all()] == ["ok"]
    if when != "after the commit":  # there viewers find the end in Postgres
        assert_stored_is_what_was_streamed(turn)


def test_a_turn_that_cannot_be_prepared_is_queued_again_at_once(alice, new_model, monkeypatch):
    """It counts as an attempt: what failed may fail for ever."""
    new_model()
    turn = ask(alice, content=SIX)
    with monkeypatch.context() as patched:
        patched.setattr("chats.context.gathering.gather", _fail)
        assert run(turn) == TurnStatus.QUEUED
        assert (turn.attempt, turn.worker, turn.lease_until) == (1, "", None)
        assert run(turn) == TurnStatus.QUEUED
        assert run(turn) is None  # the last attempt: the sweep ends it
    assert (turn.status, turn.attempt) == ("running", 3)
    assert not UsageRecord.objects.exists()


def test_a_turn_without_postgres_waits_for_its_lease(alice, new_model, break_write, monkeypatch):
    monkeypatch.setattr(runner, "STORE_SECONDS", 0.0)
    new_model()
    turn = ask(alice, content=SIX)
    break_write("store_reply", "before")
    break_write("release", "before")
    assert run(turn) is None
    assert turn.status == "running"


def test_a_call_whose_storing_was_not_confirmed_is_stored_once(alice, new_model, break_write):
    """Its turn is left to its lease: another attempt goes on from what is stored."""
    new_model()
    turn = ask(alice, content=marker("calculate", {"expression": "6*7"}))
    break_write("store_reply", "after the commit")
    assert run(turn) is None
    assert list(ChatMessage.objects.filter(turn=turn, role="tool_call").values_list("step")) == [
        (1,)
    ]
    expire(turn)
    assert sweep.sweep_turns() == [turn.pk]
    assert run(turn, "w2") == TurnStatus.COMPLETED
    roles = ChatMessage.objects.filter(turn=turn).exclude(pk=turn.question_id).order_by("position")
    assert [row.role for row in roles] == ["tool_call", "tool", "assistant"]


def _fail(*_: Any) -> None:
    raise OperationalError("the connection is lost")


def test_a_claim_that_was_not_begun_is_returned(alice, new_model, monkeypatch):
    """It was read after its claim, and there the connection was lost."""
    new_model()
    turn = ask(alice, content=SIX)
    me = this_worker().name
    with monkeypatch.context() as patched:
        patched.setattr("chats.context.gathering.load_claimed_turn", _fail)
        assert run(turn, me) == TurnStatus.QUEUED
    assert (turn.attempt, turn.worker) == (1, "")
    assert run(turn, me) == TurnStatus.COMPLETED
    assert [record.outcome for record in UsageRecord.objects.all()] == ["ok"]


def test_another_workers_claim_is_not_returned(alice, new_model):
    new_model()
    turn = ask(alice, content=SIX)
    Turn.objects.take([turn.pk], "w2", 20)
    assert not Turn.objects.return_claim(turn.pk, worker="w1")


def test_a_message_survives_a_claim_without_postgres(alice, monkeypatch):
    turn = ask(alice)
    sent: list[Any] = []
    monkeypatch.setattr("chats.tasks.enqueue_turn", sent.append)
    monkeypatch.setattr("chats.tasks.AWAY_SECONDS", 0)
    monkeypatch.setattr("chats.turns.claims.claim_next", _fail)
    run_turn(str(turn.pk))
    assert sent == [turn.pk]
