"""Workers that are killed or stopped: another one finishes their turns, and nothing is told twice."""

import base64
import json
import signal

import pytest

from tests.e2e.kit.platform import QUICK_LEASE
from tests.e2e.kit.transcripts import check_stored
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.e2e

LONG = "Tell me. [[fake tokens=80 itl=40]]"
"""3.2 seconds of text: more than the grace of a stopping worker."""
WHOLE = answer_text(80)


def seconds(number: float) -> str:
    """Arguments of a waiting tool, as the fake provider takes them."""
    return base64.urlsafe_b64encode(json.dumps({"seconds": number}).encode()).decode().rstrip("=")


def test_a_killed_workers_answer_is_given_once_and_whole(platform, ann):
    """With the usual lease, which is what a person really waits."""
    asked = ann.ask(LONG)
    viewer = ann.watch(asked).wait_for_text(100)
    platform.chat_worker.kill()
    platform.restore()
    events = viewer.to_the_end()

    assert viewer.connections == 1
    [restarted] = [e for e in events if e.event == "turn.restarted"]
    assert (restarted.attempt, restarted.step) == (2, 1)
    assert viewer.text == WHOLE
    [answer] = check_stored(ann, asked, events)
    assert answer["content"] == WHOLE
    turn = ann.turn(asked.turn_id)
    assert (turn["status"], turn["attempts"]) == ("completed", 2)
    roles = [m["role"] for m in ann.messages(asked.chat_id, all_branches=True)]
    assert sorted(roles) == ["assistant", "human"]
    late = ann.watch(asked).to_the_end()
    check_stored(ann, asked, late)


def test_a_second_worker_takes_over_without_a_restart(quick_platform, ann):
    both = quick_platform.chat_worker, quick_platform.start_member("chat", **QUICK_LEASE)
    asked = [ann.ask(LONG) for _ in range(4)]
    viewers = [ann.watch(each).wait_for_text() for each in asked]
    busier = max(both, key=lambda member: len(quick_platform.turns_of(member)))
    lost = quick_platform.turns_of(busier)
    busier.kill()
    assert lost
    for each, viewer in zip(asked, viewers, strict=True):
        [answer] = check_stored(ann, each, viewer.to_the_end())
        assert answer["content"] == WHOLE
        assert ann.turn(each.turn_id)["attempts"] == (2 if each.turn_id in lost else 1)


def test_a_cancelled_turn_of_a_killed_worker_is_told_as_it_is_stored(quick_platform, ann):
    """Killed before it saved any text: what viewers saw is gone, and they are told so."""
    worker = quick_platform.chat_worker
    asked = ann.ask(LONG)
    viewer = ann.watch(asked).wait_for_text()
    worker.kill()
    assert ann.post(f"turns/{asked.turn_id}/cancel/").body["status"] == "running"
    quick_platform.start_member("chat", **QUICK_LEASE)
    events = viewer.to_the_end()
    assert viewer.names[-2:] == ["turn.snapshot", "turn.cancelled"]
    check_stored(ann, asked, events)
    assert ann.turn(asked.turn_id)["status"] == "cancelled"


def test_a_worker_that_was_only_slow_writes_nothing_more(quick_platform, ann):
    """Stopped for longer than its lease, as a paused machine is; then it goes on, and can end."""
    slow = quick_platform.chat_worker
    asked = [ann.ask(LONG) for _ in range(10)]
    viewers = [ann.watch(each).wait_for_text(50) for each in asked]
    slow.process.send_signal(signal.SIGSTOP)
    try:
        quick_platform.start_member("chat", **QUICK_LEASE)
        for viewer in viewers:
            viewer.wait_for_event("turn.restarted")
    finally:
        slow.process.send_signal(signal.SIGCONT)
    for each, viewer in zip(asked, viewers, strict=True):
        [answer] = check_stored(ann, each, viewer.to_the_end())
        assert answer["content"] == WHOLE
        assert len(ann.messages(each.chat_id, all_branches=True)) == 2
    quick_platform.stop_member(slow)


@pytest.mark.parametrize(
    ("tool", "result"),
    [("wait_long", "Its outcome is unknown; it was not repeated."), ("wait_safely", "waited")],
)
def test_a_call_that_was_cut_is_repeated_only_where_that_is_safe(
    quick_platform, ann, fake_provider, tool, result
):
    worker = quick_platform.chat_worker
    asked = ann.ask(f"Wait. [[fake call={tool} args={seconds(4)} tokens=20 itl=20]]")
    viewer = ann.watch(asked).wait_for_event("tool.started")
    worker.kill()
    quick_platform.start_member("chat", **QUICK_LEASE)
    events = viewer.to_the_end()

    stored = check_stored(ann, asked, events)
    assert [m["role"] for m in stored] == ["tool_call", "tool", "assistant"]
    assert stored[1]["content"].endswith(result)
    assert stored[1]["tool_call"]["id"] == stored[0]["tool_call"]["id"]
    assert stored[2]["content"] == answer_text(20)
    turn = ann.turn(asked.turn_id)
    assert (turn["status"], turn["attempts"]) == ("completed", 2)
    assert len([e for e in events if e.event == "tool.finished"]) == 1


@pytest.mark.parametrize("model", ["fake-gemini", "fake-deepseek"])
def test_what_a_model_wants_back_survives_too(quick_platform, ann, model):
    """They refuse the second step without the signature or the thought of the first."""
    worker = quick_platform.chat_worker
    asked = ann.ask(f"Wait. [[fake call=wait_safely args={seconds(4)} tokens=6]]", model=model)
    viewer = ann.watch(asked).wait_for_event("tool.started")
    worker.kill()
    quick_platform.start_member("chat", **QUICK_LEASE)
    stored = check_stored(ann, asked, viewer.to_the_end())
    assert [m["role"] for m in stored] == ["tool_call", "tool", "assistant"]
    turn = ann.turn(asked.turn_id)
    assert (turn["status"], turn["attempts"]) == ("completed", 2)
    later = ann.ask("And? [[fake tokens=6]]", chat_id=asked.chat_id)
    assert ann.ended(later.turn_id)["status"] == "completed"


def test_a_finished_call_is_not_made_again(quick_platform, ann):
    worker = quick_platform.chat_worker
    asked = ann.ask(f"Wait. [[fake call=wait_long args={seconds(0.1)} tokens=60 itl=40]]")
    viewer = ann.watch(asked).wait_for_text(20)
    worker.kill()
    quick_platform.start_member("chat", **QUICK_LEASE)
    events = viewer.to_the_end()
    stored = check_stored(ann, asked, events)
    assert [m["role"] for m in stored] == ["tool_call", "tool", "assistant"]
    assert stored[1]["content"] == "waited"
    assert len([e for e in events if e.event == "tool.started"]) == 1
    [restarted] = [e for e in events if e.event == "turn.restarted"]
    assert restarted.step == 2


@pytest.mark.parametrize(
    ("marker", "status", "kept"),
    [("tokens=200 itl=40", "incomplete", True), ("ttft=60000", "failed", False)],
)
def test_a_turn_that_kills_every_worker_is_given_up(quick_platform, ann, marker, status, kept):
    worker = quick_platform.chat_worker
    asked = ann.ask(f"Tell me. [[fake {marker}]]")
    viewer = ann.watch(asked)
    for attempt in (1, 2, 3):
        viewer.wait_for(
            lambda v, attempt=attempt: v.events and v.events[-1].seq > (attempt - 1) * 1_000_000
        )
        if kept:
            # The number tells this attempt's text from the last one's, which is deleted first.
            saved = "SELECT 1 FROM chats_turn WHERE id = %s AND seq > %s AND partial_text <> ''"
            since = (attempt - 1) * 1_000_000
            quick_platform.wait_for(
                lambda saved=saved, since=since: quick_platform.query(saved, asked.turn_id, since),
                "partial text",
            )
        worker.kill()
        worker = quick_platform.start_member("chat", **QUICK_LEASE)
    events = viewer.to_the_end()
    turn = ann.turn(asked.turn_id)
    assert (turn["status"], turn["attempts"]) == (status, 3)
    assert (turn["error"]["code"], turn["error"]["retryable"]) == ("worker_lost", True)
    assert events[-1].event == f"turn.{status}"
    if kept:
        [answer] = check_stored(ann, asked, events)
        assert answer["content"] and answer_text(200).startswith(answer["content"])
    else:
        assert ann.written(asked) == []
    again = ann.post(f"messages/{asked.message_id}/regenerate/", {})
    assert again.status == 201
    assert ann.post(f"turns/{again.body['turn']['id']}/cancel/").status == 200


def test_a_stopped_worker_gives_its_turns_back_uncounted(platform, ann):
    first = platform.chat_worker
    asked = [ann.ask(LONG) for _ in range(10)]
    viewers = [ann.watch(each).wait_for_text() for each in asked]
    platform.stop_member(first)
    assert {ann.turn(each.turn_id)["status"] for each in asked} == {"queued"}
    platform.start_member("chat")
    for each, viewer in zip(asked, viewers, strict=True):
        events = viewer.to_the_end()
        [answer] = check_stored(ann, each, events)
        assert answer["content"] == WHOLE
        turn = ann.turn(each.turn_id)
        assert (turn["status"], turn["attempts"]) == ("completed", 1)
        assert viewer.names.count("turn.restarted") == 1


def test_a_stopped_worker_lets_short_turns_finish(platform, ann):
    asked = ann.ask("Tell me. [[fake tokens=10 itl=40]]")
    viewer = ann.watch(asked).wait_for_text()
    platform.stop_member(platform.chat_worker)
    check_stored(ann, asked, viewer.to_the_end())
    assert "turn.restarted" not in viewer.names


def test_a_new_worker_finds_what_was_asked_before_it_came(platform, ann):
    platform.stop_member(platform.chat_worker)
    asked = [ann.ask("Tell me. [[fake tokens=5]]") for _ in range(5)]
    platform.flush_redis()  # the rings are lost
    viewers = [ann.watch(each) for each in asked]
    assert {ann.turn(each.turn_id)["status"] for each in asked} == {"queued"}
    platform.start_member("chat")
    for each, viewer in zip(asked, viewers, strict=True):
        [answer] = check_stored(ann, each, viewer.to_the_end())
        assert answer["content"] == answer_text(5)
