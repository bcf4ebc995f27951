"""Test POST turns/{id}/approve/ and the turn around it: it waits, survives everything, goes on."""

import asyncio
from typing import Any

import pytest

from amber.lib import redis as amber_redis
from amber.lib.workers.leases import StopReason
from chats import services
from chats.events.stream import events_key
from chats.messages.turn_messages import messages_of_turn
from chats.models import Turn
from chats.running.resumption import UNKNOWN_OUTCOME
from chats.running.writer import TurnWriter
from chats.tests.event_streams import read_first, read_parts, read_sse, stream_of
from chats.tests.rows import (
    ABSENT,
    error_of,
    expire,
    fields_of,
    new_assistant,
    new_chat,
    of_turn,
    path_of,
)
from chats.tests.runs import (
    ask,
    ask_in,
    assert_stored_is_what_was_streamed,
    names_of,
    run,
    running,
    seen_of,
    unmarked,
)
from chats.tests.turns.approvals import (
    asked,
    calls_of,
    decide,
    decide_all,
    die,
    offline,
    results_of,
    sent,
)
from chats.turns import sweep
from chats.turns.approval import DECLINED
from engine.events import TurnStatus
from providers.models import UsageRecord
from tests.fixtures.personas import api, visit
from tools.calling.registry import register_tool

__all__ = ["asked", "offline", "sent"]

pytestmark = pytest.mark.django_db(transaction=True)

BOTH = '/look {"place": "Ulm"}\n/send {"to": "ann"}'
TWICE = '/send {"to": "ann"}\n/send {"to": "bob"}'


# -- Waiting ---------------------------------------------------------------------------------------


def test_other_calls_run_at_once_and_then_the_turn_waits(alice, asked, sent):
    turn = asked(BOTH)
    assert run(turn) == TurnStatus.WAITING
    assert sent == []
    assert results_of(turn) == ["Rain in Ulm."]
    assert (turn.status, turn.attempt, turn.worker, turn.lease_until) == ("waiting", 0, "", None)
    assert names_of(turn) == [
        "turn.started",
        *["message.stored"] * 2,
        "tool.started",
        "tool.finished",
        "message.stored",
        "turn.waiting",
    ]
    assert seen_of(turn).ended is None
    (call,) = stream_of(turn)[-1]["calls"]
    assert (call["name"], call["arguments"]) == ("send", '{"to": "ann"}')
    assert call["approved"] is None
    shown = api(alice).get(of_turn(turn)).json()
    assert (shown["status"], shown["waiting_calls"]) == ("waiting", [call])
    assert stream_of(turn)[-1]["seq"] == turn.seq


def test_an_approved_call_is_made_and_the_turn_ends_well(alice, asked, sent, enqueued_turns):
    turn = asked(BOTH)
    run(turn)
    enqueued_turns.clear()
    answer = decide_all(alice, turn, True)
    assert (answer.status_code, answer.json()["status"]) == (200, "queued")
    assert (answer.json()["waiting_calls"], enqueued_turns) == ([], [turn.pk])
    assert run(turn, "w2") == TurnStatus.COMPLETED
    assert sent == ["ann"]
    assert results_of(turn) == ["Rain in Ulm.", "Sent to ann."]
    assert path_of(turn.chat)[-1][1].endswith("send answered:\nSent to ann.")
    assert (turn.attempt, turn.waiting_calls) == (1, []), "waiting is no attempt"
    assert "turn.restarted" not in names_of(turn)
    assert_stored_is_what_was_streamed(turn)
    numbers = [event["seq"] for event in stream_of(turn)]
    assert numbers == list(range(1, len(numbers) + 1)), "numbering goes on"


def test_a_declined_call_is_told_to_the_model_and_not_made(alice, asked, sent):
    turn = asked(BOTH)
    run(turn)
    assert decide_all(alice, turn, False).status_code == 200
    assert run(turn) == TurnStatus.COMPLETED
    assert sent == []
    assert results_of(turn) == ["Rain in Ulm.", DECLINED]
    finished = [e for e in stream_of(turn) if e["event"] == "tool.finished"]
    assert (finished[-1]["ok"], finished[-1]["content"]) == (False, DECLINED)
    started = [e["name"] for e in stream_of(turn) if e["event"] == "tool.started"]
    assert started == ["look"]
    assert_stored_is_what_was_streamed(turn)


def test_each_call_has_a_decision_of_its_own(alice, asked, sent):
    turn = asked(TWICE)
    run(turn)
    to_ann, to_bob = calls_of(turn)
    assert decide(alice, turn, {to_ann: False, to_bob: True}).status_code == 200
    assert run(turn) == TurnStatus.COMPLETED
    assert sent == ["bob"]
    assert sorted(results_of(turn)) == sorted([DECLINED, "Sent to bob."])
    assert_stored_is_what_was_streamed(turn)


def test_a_later_step_may_wait_again(alice, asked, sent, new_model):
    new_model("fake-endless-tools")
    turn = ask(
        alice, "fake-endless-tools", content="[[fake tokens=3]]", disabled_builtin_tools=["look"]
    )
    assert run(turn) == TurnStatus.WAITING
    decide_all(alice, turn, True)
    assert run(turn) == TurnStatus.WAITING
    decide_all(alice, turn, False)
    assert run(turn) == TurnStatus.WAITING
    assert services.cancel_turn(turn).status == "cancelled"
    assert len(sent) == 1
    assert turn.step == 3


def test_what_is_asked_after_waiting_is_what_would_have_been_asked_at_once(
    alice, sent, new_model, fake_provider
):
    new_model("fake-parallel-tools")
    turn = ask(alice, "fake-parallel-tools", content="Both, please [[fake tokens=3]]")
    assert run(turn) == TurnStatus.WAITING
    decide_all(alice, turn, True)
    assert run(turn) == TurnStatus.COMPLETED
    messages = unmarked(fake_provider.requests("Both, please")[-1]["messages"])
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool"]
    calling = messages[1]["tool_calls"]
    assert [c["function"]["name"] for c in calling] == ["look", "send"]
    assert [m["tool_call_id"] for m in messages[2:]] == [c["id"] for c in calling]
    assert messages[3]["content"] == "Sent to text."


def test_the_chat_is_busy_meanwhile(alice, asked):
    turn = asked(BOTH)
    run(turn)
    answer = api(alice).post(f"/api/v1/chats/{turn.chat_id}/messages/", {"content": "And?"})
    assert error_of(answer) == (409, "turn_in_progress")
    assert answer.json()["error"]["turn_id"] == str(turn.pk)


def test_usage_is_accounted_once(alice, asked):
    turn = asked(BOTH)
    run(turn)
    decide_all(alice, turn, True)
    run(turn)
    assert UsageRecord.objects.filter(turn_id=turn.pk).count() == 2


def test_a_guest_does_not_approve(alice, offline, sent):
    """Nobody who may approve is there: the call is refused, and the turn does not wait for ever."""
    assistant = new_assistant(alice, model="offline", public=True)
    principal = visit(assistant).principal
    chat = services.create_chat(principal, assistant=assistant)
    posted = services.post_message(chat.pk, principal, role="human", content='/send {"to": "ann"}')
    assert posted.turn is not None
    assert run(posted.turn) == TurnStatus.COMPLETED
    assert sent == []
    (result,) = results_of(posted.turn)
    assert result.startswith("send was not called: a person must approve each call")


def test_without_a_chat_nobody_can_approve(alice, offline, sent):
    """The answer says so, and nothing waits for ever."""
    assistant = new_assistant(alice, model="offline")
    question = {"role": "human", "content": '/send {"to": "ann"}'}
    turn: Any = services.start_stateless_turn(
        alice.principal, assistant=assistant, messages=[question]
    )
    assert run(turn) == TurnStatus.COMPLETED
    assert sent == []
    (result,) = [m for m in turn.output["messages"] if m["role"] == "tool"]
    assert result["content"].startswith("send was not called: a person must approve each call")
    assert_stored_is_what_was_streamed(turn)


# -- Deciding --------------------------------------------------------------------------------------


def test_part_of_the_decisions_is_kept_and_the_rest_waited_for(alice, asked, sent, enqueued_turns):
    turn = asked(TWICE)
    run(turn)
    enqueued_turns.clear()
    to_ann, to_bob = calls_of(turn)
    answer = decide(alice, turn, {to_ann: True})
    assert (answer.status_code, answer.json()["status"]) == (200, "waiting")
    shown = {c["call_id"]: c["approved"] for c in answer.json()["waiting_calls"]}
    assert shown == {to_ann: True, to_bob: None}
    assert enqueued_turns == []
    assert run(turn) is None, "nobody may run it yet"
    assert decide(alice, turn, {to_bob: True}).json()["status"] == "queued"
    assert enqueued_turns == [turn.pk]
    run(turn)
    assert sorted(sent) == ["ann", "bob"]


def test_the_same_decision_again_is_the_same_answer_and_another_a_conflict(
    alice, asked, enqueued_turns
):
    turn = asked(TWICE)
    run(turn)
    to_ann, to_bob = calls_of(turn)
    first = decide(alice, turn, {to_ann: True})
    again = decide(alice, turn, {to_ann: True})
    assert (again.status_code, again.json()) == (200, first.json())
    assert error_of(decide(alice, turn, {to_ann: False, to_bob: True})) == (409, "conflict")
    assert calls_of(turn) and turn.waiting_calls[1]["approved"] is None, "nothing was written"
    decide(alice, turn, {to_bob: False})
    enqueued_turns.clear()
    last = decide(alice, turn, {to_bob: False})
    assert (last.status_code, last.json()["status"]) == (200, "queued")
    assert enqueued_turns == [], "enqueued once"
    assert error_of(decide(alice, turn, {to_bob: True})) == (409, "conflict")


def test_unknown_calls_are_named(alice, asked):
    turn = asked(BOTH)
    run(turn)
    (known,) = calls_of(turn)
    assert fields_of(decide(alice, turn, {known: True, "x": True})) == ["decisions.x"]
    assert calls_of(turn) and turn.waiting_calls[0]["approved"] is None


@pytest.mark.parametrize("decisions", [None, {}, [], "yes", {"c": "true"}, {"c": 1}, {"c": None}])
def test_only_true_and_false_are_decisions(alice, asked, decisions):
    turn = asked(BOTH)
    run(turn)
    (field,) = fields_of(decide(alice, turn, decisions))
    assert field.startswith("decisions")


@pytest.mark.parametrize("status", ["queued", "running", "completed", "cancelled"])
def test_a_turn_that_does_not_wait_is_a_conflict(alice, asked, status):
    turn = asked("Hi")
    Turn.objects.update(status=status)
    assert error_of(decide(alice, turn, {"c": True})) == (409, "turn_not_waiting")


def test_the_first_answer_is_given_again_for_its_key(alice, asked, sent):
    turn = asked(BOTH)
    run(turn)
    (call_id,) = calls_of(turn)
    first = decide(alice, turn, {call_id: True}, **{"Idempotency-Key": "k"})
    run(turn)
    again = decide(alice, turn, {call_id: True}, **{"Idempotency-Key": "k"})
    assert (again.status_code, again.json()) == (200, first.json())
    other = decide(alice, turn, {call_id: False}, **{"Idempotency-Key": "k"})
    assert error_of(other) == (409, "idempotency_mismatch")
    assert sent == ["ann"]


def test_nobody_else_decides(alice, bob, carol, mallory, asked, sent):
    turn = asked(BOTH)
    run(turn)
    (call_id,) = calls_of(turn)
    for other, status in ((bob, 404), (carol, 404), (mallory, 404), (None, 401)):
        assert decide(other, turn, {call_id: True}).status_code == status
    _, reader = alice.new_key(scopes=["read"])
    body = {"decisions": {call_id: True}}
    assert api(key=reader).post(of_turn(turn, "approve/"), body).status_code == 403
    assert calls_of(turn) and turn.waiting_calls[0]["approved"] is None
    _, writer = alice.new_key()
    assert api(key=writer).post(of_turn(turn, "approve/"), body).status_code == 200


def test_an_unknown_turn_is_404(alice):
    answer = api(alice).post(f"/api/v1/turns/{ABSENT}/approve/", {"decisions": {"c": True}})
    assert error_of(answer) == (404, "not_found")


# -- Ending and breaking ---------------------------------------------------------------------------


def test_a_waiting_turn_is_cancelled_at_once(alice, asked, sent):
    turn = asked(BOTH)
    run(turn)
    answer = api(alice).post(of_turn(turn, "cancel/"))
    assert answer.json()["status"] == "cancelled"
    assert answer.json()["waiting_calls"] == []
    assert_stored_is_what_was_streamed(turn)
    assert error_of(decide(alice, turn, {"c": True})) == (409, "turn_not_waiting")
    assert run(ask_in(turn.chat, alice, "And?")) == TurnStatus.COMPLETED
    assert sent == []


def test_a_turn_cancelled_in_the_moment_it_would_wait_ends(alice, asked, monkeypatch):
    """A turn that waits has no worker that would see the request later."""
    turn = asked(BOTH)
    wait = TurnWriter.wait

    def cancelled_before(writer: Any, seq: int) -> None:
        Turn.objects.update(cancel_requested_at="2026-01-01T00:00:00Z")
        wait(writer, seq)

    monkeypatch.setattr(TurnWriter, "wait", cancelled_before)
    assert run(turn) == TurnStatus.CANCELLED
    assert names_of(turn)[-1] == "turn.cancelled"
    assert_stored_is_what_was_streamed(turn)


def test_the_next_worker_waits_where_the_last_one_died_before(alice, asked, sent, monkeypatch):
    turn = asked(BOTH)
    with monkeypatch.context() as patched:
        patched.setattr(TurnWriter, "wait", die)
        assert run(turn) is None
    expire(turn)
    sweep.sweep_turns()
    assert run(turn, "w2") == TurnStatus.WAITING
    assert (sent, results_of(turn)) == ([], ["Rain in Ulm."])
    decide_all(alice, turn, True)
    assert run(turn) == TurnStatus.COMPLETED
    assert sent == ["ann"]
    assert_stored_is_what_was_streamed(turn)


@pytest.mark.parametrize(("idempotent", "made"), [(False, 1), (True, 2)])
def test_an_approval_serves_one_call_unless_it_is_safe(
    alice, offline, monkeypatch, idempotent, made
):
    """The worker dies between the call and its result."""
    monkeypatch.setattr("tools.calling.registry._tools", {})
    times: list[int] = []

    @register_tool(asks_first=True, idempotent=idempotent)
    def send() -> str:
        """Sends."""
        times.append(1)
        return "Sent."

    turn = ask(alice, "offline", content="/send")
    run(turn)
    decide_all(alice, turn, True)
    with monkeypatch.context() as patched:
        patched.setattr(TurnWriter, "store_result", die)
        assert run(turn) is None
    assert calls_of(turn) == [], "cleared before the call was made"
    expire(turn)
    sweep.sweep_turns()
    assert run(turn, "w2") == TurnStatus.COMPLETED
    assert len(times) == made
    assert results_of(turn) == ["Sent." if idempotent else UNKNOWN_OUTCOME]
    assert turn.attempt == 2
    assert_stored_is_what_was_streamed(turn)


def test_a_worker_that_dies_before_it_took_the_approval_loses_nothing(
    alice, asked, sent, monkeypatch
):
    turn = asked(BOTH)
    run(turn)
    decide_all(alice, turn, True)
    with monkeypatch.context() as patched:
        patched.setattr(TurnWriter, "take_approved", die)
        assert run(turn) is None
    assert sent == []
    expire(turn)
    sweep.sweep_turns()
    assert run(turn, "w2") == TurnStatus.COMPLETED
    assert sent == ["ann"]
    assert_stored_is_what_was_streamed(turn)


def test_a_turn_released_while_its_free_calls_run_still_asks(alice, offline, sent):
    begun: list[int] = []

    @register_tool(idempotent=True)
    async def dawdle() -> str:
        """Dawdles, the first time."""
        begun.append(1)
        await asyncio.sleep(60 if len(begun) == 1 else 0)
        return "done"

    turn = ask(alice, "offline", content='/dawdle\n/send {"to": "ann"}')
    with running(turn) as this:
        this.wait_for(lambda: begun)
        this.stop(StopReason.RELEASED)
    assert this.status == [TurnStatus.QUEUED]
    assert run(turn, "w2") == TurnStatus.WAITING
    assert (sent, results_of(turn)) == ([], ["done"])
    decide_all(alice, turn, False)
    assert run(turn) == TurnStatus.COMPLETED
    assert_stored_is_what_was_streamed(turn)


# -- Watching --------------------------------------------------------------------------------------


def test_a_viewer_stays_connected_until_the_end(alice, asked):
    """The response is read after all has happened; it began while the turn waited."""
    turn = asked(BOTH)
    run(turn)
    response = api(alice).get(of_turn(turn, "events/"))
    decide_all(alice, turn, True)
    run(turn)
    events = read_sse(response)
    names = [name for _, name, _ in events]
    assert "turn.waiting" in names
    assert names[-1] == "turn.completed"
    assert [data for _, _, data in events] == stream_of(turn)


def test_a_viewer_of_a_lost_stream_gets_a_snapshot_and_what_is_waited_for(alice, asked):
    turn = asked(BOTH)
    run(turn)
    amber_redis.client().delete(events_key(turn.organization_id, turn.pk))
    response = api(alice).get(of_turn(turn, "events/"))
    events = read_first(response, 2)
    assert [name for _, name, _ in events] == ["turn.snapshot", "turn.waiting"]
    assert events[-1][0] == turn.seq
    assert events[0][2]["messages"] == messages_of_turn(turn)
    assert [call["call_id"] for call in events[1][2]["calls"]] == calls_of(turn)


def test_a_viewer_who_knows_everything_gets_only_heartbeats(alice, asked, settings):
    settings.AMBER_STREAM_HEARTBEAT_SECONDS = 0.2
    turn = asked(BOTH)
    run(turn)
    amber_redis.client().delete(events_key(turn.organization_id, turn.pk))
    headers = {"Last-Event-ID": str(turn.seq)}
    response: Any = api(alice).get(of_turn(turn, "events/"), headers=headers)
    assert read_parts(response, 1) == b": heartbeat\n\n"


# -- After a right has ended -----------------------------------------------------------------------


def test_who_may_not_use_the_assistant_any_more_approves_nothing(alice, bob, offline, sent):
    """The call would be made with what the assistant's owner gave it, and it may have waited for days."""
    assistant = new_assistant(alice, model="offline", shared=True)
    chat = new_chat(bob, assistant=assistant)
    turn = ask_in(chat, bob, '/send {"to": "ann"}')
    assert run(turn) == TurnStatus.WAITING
    api(alice).patch(f"/api/v1/assistants/{assistant.pk}/", {"shared": False})
    for approved in (True, False):
        assert error_of(decide_all(bob, turn, approved)) == (403, "forbidden")
    assert calls_of(turn) and turn.waiting_calls[0]["approved"] is None
    assert api(bob).post(of_turn(turn, "cancel/")).json()["status"] == "cancelled"
    assert sent == []


def test_a_call_is_decided_on_after_its_assistant_was_deleted(alice, asked, sent):
    turn = asked(BOTH)
    run(turn)
    assert api(alice).delete(f"/api/v1/assistants/{turn.assistant_id}/").status_code == 204
    assert decide_all(alice, turn, True).status_code == 200
    assert run(turn) == TurnStatus.COMPLETED
    assert sent == ["ann"]
