"""Rounds of tool calls: two at once, endless ones, one that does not exist."""

import pytest

from tests.e2e.kit.transcripts import check_stored
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.e2e


def test_two_calls_at_once_and_then_the_answer(platform, ann):
    asked = ann.ask("Work it out. [[fake tokens=20 itl=20]]", model="fake-parallel-tools")
    viewer = ann.watch(asked)
    events = viewer.to_the_end()
    story = [name for name in viewer.names if name != "text.delta"]
    assert story[:5] == ["turn.started", *["message.stored"] * 2, *["tool.started"] * 2]
    finished = ["tool.finished", "message.stored"]
    assert story[5:] == [*finished, *finished, "message.stored", "turn.completed"]

    stored = check_stored(ann, asked, events)
    assert [m["role"] for m in stored] == ["tool_call", "tool_call", "tool", "tool", "assistant"]
    calls, results = stored[:2], stored[2:4]
    assert {c["tool_call"]["name"] for c in calls} == {"calculate", "current_time"}
    assert {c["tool_call"]["id"] for c in calls} == {r["tool_call"]["id"] for r in results}
    assert len({m["tool_call"]["reply_id"] for m in stored[:4]}) == 1
    assert stored[4]["content"] == answer_text(20)
    by_call = {e.call_id: e.content for e in events if e.event == "tool.finished"}
    assert by_call == {r["tool_call"]["id"]: r["content"] for r in results}

    again = ann.ask("Once more. [[fake tokens=20]]", chat_id=asked.chat_id)
    check_stored(ann, again, ann.watch(again).to_the_end())


def test_endless_calls_end_with_a_request_without_tools(platform, ann, fake_provider):
    asked = ann.ask("Never end 4711. [[fake tokens=5]]", model="fake-endless-tools")
    events = ann.watch(asked).to_the_end()
    stored = check_stored(ann, asked, events)
    assert [m["role"] for m in stored] == ["tool_call", "tool"] * 5 + ["assistant"]
    assert stored[-1]["content"] == answer_text(5)
    requests = fake_provider.requests("Never end 4711")
    assert [bool(r.get("tools")) for r in requests] == [True] * 5 + [False]
    assert ann.turn(asked.turn_id)["status"] == "completed"


def test_a_stream_dropped_between_calls_and_results_is_resumed_whole(platform, ann):
    for drop_after in range(2, 9):
        asked = ann.ask("Work it out. [[fake tokens=3]]", model="fake-parallel-tools")
        viewer = ann.watch(asked, drop_after=drop_after)
        events = viewer.to_the_end()
        assert viewer.connections == 2
        check_stored(ann, asked, events)
