"""Cancelling: while text flows, while the provider is silent, before anybody runs the turn."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from amber.processes import wait_until
from tests.e2e.kit.client import Client
from tests.e2e.kit.transcripts import check_numbers, check_stored
from tests.fakes.answers import answer_text
from tests.fixtures.provider import RunningProvider

pytestmark = pytest.mark.e2e


def cancel(client: Client, turn_id: str) -> dict[str, Any]:
    answer = client.post(f"turns/{turn_id}/cancel/")
    assert answer.status == 200, answer
    return dict(answer.body)


def is_closed(provider: RunningProvider, aborted_before: int) -> Callable[[], bool]:
    return lambda: provider.stats()["aborted"] > aborted_before


def test_keeps_the_text_that_was_shown_and_hangs_up(platform, ann, fake_provider):
    aborted = fake_provider.stats()["aborted"]
    asked = ann.ask("Tell me. [[fake tokens=1000 itl=40]]")
    viewer = ann.watch(asked).wait_for_text(50)
    cancel(ann, asked.turn_id)
    events = viewer.to_the_end()
    assert viewer.names[-2:] == ["message.stored", "turn.cancelled"]
    [answer] = check_stored(ann, asked, events)
    assert answer["role"] == "assistant"
    assert answer["content"] == viewer.text == answer_text(1000)[: len(viewer.text)]
    turn = ann.turn(asked.turn_id)
    assert (turn["status"], turn["error"]) == ("cancelled", None)
    assert wait_until(is_closed(fake_provider, aborted), timeout_seconds=10)

    assert cancel(ann, asked.turn_id) == ann.turn(asked.turn_id)
    assert ann.written(asked) == [answer]


def test_hangs_up_on_a_silent_provider(platform, ann, fake_provider):
    before = fake_provider.stats()
    asked = ann.ask("Tell me. [[fake ttft=60000]]")
    viewer = ann.watch(asked).wait_for_event("turn.started")
    assert wait_until(
        lambda: fake_provider.stats()["active"] > before["active"], timeout_seconds=10
    )
    cancel(ann, asked.turn_id)
    viewer.to_the_end()
    assert viewer.names == ["turn.started", "turn.cancelled"]
    assert wait_until(is_closed(fake_provider, before["aborted"]), timeout_seconds=10)
    assert ann.written(asked) == []
    assert ann.turn(asked.turn_id)["status"] == "cancelled"
    assert [m["id"] for m in ann.messages(asked.chat_id)] == [asked.message_id]


def test_cancels_many_turns_at_any_moment(platform, ann):
    """Wherever a cancel meets a turn, the turn ends once, and its story is whole."""
    all_asked = [ann.ask("Tell me. [[fake ttft=50 tokens=20 itl=15]]") for _ in range(12)]
    viewers = [ann.watch(asked) for asked in all_asked]
    for asked in all_asked:
        cancel(ann, asked.turn_id)
        cancel(ann, asked.turn_id)
        time.sleep(0.03)
    for asked, viewer in zip(all_asked, viewers, strict=True):
        events = viewer.to_the_end()
        assert viewer.names[-1] in ("turn.cancelled", "turn.completed")
        check_numbers(events)
        stored = ann.written(asked)
        assert "".join(m["content"] for m in stored) == viewer.text
        asked_again = ann.ask("And now? [[fake tokens=1]]", chat_id=asked.chat_id)
        assert ann.ended(asked_again.turn_id)["status"] == "completed"


def test_cancels_a_turn_that_waits_in_the_queue(platform, ann):
    platform.stop_member(platform.chat_worker)
    asked = ann.ask()
    viewer = ann.watch(asked)
    assert cancel(ann, asked.turn_id)["status"] == "cancelled"
    assert cancel(ann, asked.turn_id)["status"] == "cancelled"
    viewer.to_the_end()
    assert viewer.names == ["turn.snapshot", "turn.cancelled"]
    assert viewer.events[0].messages == []
    platform.start_member("chat")
    again = ann.ask("Hello [[fake tokens=3]]", chat_id=asked.chat_id)
    assert ann.ended(again.turn_id)["status"] == "completed"
    assert ann.turn(asked.turn_id)["attempts"] == 0
    assert ann.written(asked) == []


def test_a_chat_deleted_under_its_turn_takes_the_turn_along(platform, ann, fake_provider):
    aborted = fake_provider.stats()["aborted"]
    asked = ann.ask("Tell me. [[fake tokens=1000 itl=40]]")
    ann.watch(asked).wait_for_text(50)
    assert ann.request("DELETE", f"chats/{asked.chat_id}/").status == 204
    assert wait_until(is_closed(fake_provider, aborted), timeout_seconds=20)
    assert ann.get(f"turns/{asked.turn_id}/").status == 404
