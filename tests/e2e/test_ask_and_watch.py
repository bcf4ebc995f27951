"""Asking, and watching the answer come: from the start, in the middle, afterwards, many at once."""

import socket

import pytest

from tests.e2e.kit.client import Client, Viewer
from tests.e2e.kit.transcripts import check_numbers, check_stored
from tests.fakes.answers import answer_text
from tests.fixtures.ports import free_port

pytestmark = pytest.mark.e2e

SLOW = "Tell me. [[fake tokens=60 itl=40]]"
"""2.4 seconds of text."""


def test_streams_an_answer_that_is_stored_as_it_was_streamed(platform, ann):
    chat_id = ann.new_chat()
    viewer = Viewer(ann, "POST", f"chats/{chat_id}/messages/", {"content": SLOW})
    events = viewer.to_the_end()

    assert viewer.connections == 1
    assert viewer.names[0] == "turn.started"
    assert viewer.names[-2:] == ["message.stored", "turn.completed"]
    assert set(viewer.names[1:-2]) == {"text.delta"}
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert viewer.text == answer_text(60)

    question, answer = ann.messages(chat_id)
    assert events[0].turn["status"] == "running"
    assert events[0].message["id"] == question["id"]
    assert answer["content"] == answer_text(60)
    assert answer["parent_id"] == question["id"]
    check_numbers(events)
    turn = ann.turn(answer["turn_id"])
    assert (turn["status"], turn["attempts"], turn["finish_reason"]) == ("completed", 1, "stop")
    assert turn["usage"]["completion_tokens"] == 60
    assert events[-1].usage == turn["usage"]


def test_resumes_a_dropped_connection_without_losing_a_byte(platform, ann):
    asked = ann.ask(SLOW)
    viewer = ann.watch(asked, drop_after=12)
    events = viewer.to_the_end()

    assert viewer.connections == 2
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert viewer.text == answer_text(60)
    check_stored(ann, asked, events)


def test_drops_again_and_again_and_still_sees_every_event_once(platform, ann):
    asked = ann.ask("Tell me. [[fake tokens=100 itl=30]]")
    events = []
    last_event_id = ""
    for _ in range(6):
        viewer = ann.watch(asked, last_event_id=last_event_id)
        viewer.wait_for(lambda v: len(v.events) >= 5)
        seen = viewer.events[:5]
        events += seen
        last_event_id = str(seen[-1].seq)
    events += ann.watch(asked, last_event_id=last_event_id).to_the_end()
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    [answer] = check_stored(ann, asked, events)
    assert answer["content"] == answer_text(100)


def test_all_viewers_see_the_same_whenever_they_come(platform, ann):
    asked = ann.ask(SLOW)
    first = [ann.watch(asked) for _ in range(3)]
    first[0].wait_for_text(100)
    second = [ann.watch(asked) for _ in range(3)]
    seen = [viewer.to_the_end() for viewer in first + second]
    late = ann.watch(asked).to_the_end()
    assert all(events == late for events in seen)
    check_stored(ann, asked, late)


def test_a_viewer_who_has_seen_the_end_gets_an_empty_stream(platform, ann):
    asked = ann.ask()
    last = ann.watch(asked).to_the_end()[-1]
    path = f"turns/{asked.turn_id}/events/"
    answer = ann.get(path, headers={"Last-Event-ID": str(last.seq)})
    assert (answer.status, answer.body) == (200, None)
    almost = ann.watch(asked, last_event_id=str(last.seq - 1)).to_the_end()
    assert almost == [last]


def test_a_viewer_after_redis_lost_everything_gets_a_snapshot(platform, ann):
    asked = ann.ask("Tell me. [[fake tokens=10]]")
    before = ann.watch(asked).to_the_end()
    platform.flush_redis()
    late = ann.watch(asked)
    events = late.to_the_end()
    assert late.names == ["turn.snapshot", "turn.completed"]
    assert events[-1] == before[-1]
    [answer] = check_stored(ann, asked, events)
    assert answer["content"] == answer_text(10)
    resumed = ann.watch(asked, last_event_id=str(before[-1].seq - 2)).to_the_end()
    assert resumed == events


def test_a_viewer_of_a_later_event_than_there_is_still_learns_of_the_end(platform, ann):
    asked = ann.ask(SLOW)
    viewer = ann.watch(asked, last_event_id="999999")
    assert viewer.to_the_end()[-1].event == "turn.completed"


@pytest.mark.parametrize(
    "given", ["abc", "-1", "1.5", "1e3", "0x10", "1 2", "9" * 40, "٣", "1-0", "null"]
)
def test_refuses_a_last_event_id_that_is_no_number(platform, ann, given):
    asked = ann.ask("Hello [[fake tokens=1]]")
    answer = ann.get(
        f"turns/{asked.turn_id}/events/", headers={"Last-Event-ID": given.encode().decode("latin1")}
    )
    assert answer.status == 400
    assert answer.error["code"] == "invalid_last_event_id"
    ann.ended(asked.turn_id)


def test_silence_is_filled_with_heartbeats(platform, ann):
    asked = ann.ask("Tell me. [[fake ttft=3000 tokens=2]]")
    viewer = ann.watch(asked)
    viewer.to_the_end()
    assert viewer.comments >= 2


def test_a_question_during_a_live_turn_is_refused_with_its_id(platform, ann):
    asked = ann.ask(SLOW)
    for body in ({"content": "And now?"}, {"role": "assistant", "content": "I say"}):
        answer = ann.post(f"chats/{asked.chat_id}/messages/", body)
        assert answer.status == 409
        assert answer.error["code"] == "turn_in_progress"
        assert answer.error["turn_id"] == asked.turn_id
    path = f"messages/{asked.message_id}/regenerate/"
    assert ann.post(path, {}).error["turn_id"] == asked.turn_id
    later = ann.post(
        f"chats/{asked.chat_id}/messages/", {"role": "human_later", "content": "By the way"}
    )
    assert (later.status, later.body["turn"]) == (201, None)
    check_stored(ann, asked, ann.watch(asked).to_the_end())
    roles = [m["role"] for m in ann.messages(asked.chat_id)]
    assert roles == ["human", "human_later", "assistant"]


def test_a_dead_viewer_costs_the_turn_nothing(platform, ann):
    """It never reads; what it is sent (the question thrice, 600 KB) fits no socket's buffer."""
    asked = ann.ask("many words " * 18_000 + "[[fake itl=1000]]", model="fake-echo")
    dead = [_deaf_socket(ann, asked.turn_id) for _ in range(4)]
    try:
        [answer] = check_stored(ann, asked, ann.watch(asked).to_the_end())
        assert len(answer["content"]) > 190_000
        other = ann.ask("Tell me. [[fake tokens=5]]")
        ann.watch(other).to_the_end()
    finally:
        for each in dead:
            each.close()


def _deaf_socket(client: Client, turn_id: str) -> socket.socket:
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect(("127.0.0.1", client.port))
    deaf.sendall(
        f"GET /api/v1/turns/{turn_id}/events/ HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {client.key}\r\n\r\n".encode()
    )
    return deaf


def test_two_tenants_at_once_see_only_their_own(platform, ann, rob):
    asked = []
    for number in range(25):
        for who, name in ((ann, "ann"), (rob, "rob")):
            said = f"I am {name} {number} [[fake itl=1000]]"
            asked.append((who, said, who.ask(said, model="fake-echo")))
    viewers = [(who, said, turn, who.watch(turn)) for who, said, turn in asked]
    for who, said, turn, viewer in viewers:
        events = viewer.to_the_end()
        assert {e.turn_id for e in events} == {turn.turn_id}
        [answer] = check_stored(who, turn, events)
        assert said in answer["content"]
        assert viewer.text == answer["content"]
        other, their_name = (rob, "rob") if who is ann else (ann, "ann")
        assert f"I am {their_name}" not in viewer.text
        for path in (f"turns/{turn.turn_id}/", f"turns/{turn.turn_id}/events/"):
            assert other.get(path).status == 404
        assert other.post(f"turns/{turn.turn_id}/cancel/").status == 404


def test_two_connections_serve_ten_viewers_and_everybody_else(platform, ann):
    port = free_port()
    platform.start_web(port, AMBER_DB_POOL="2")
    there = ann.at(port)
    asked = there.ask("Tell me. [[fake tokens=100 itl=50]]")
    viewers = [there.watch(asked) for _ in range(10)]
    for viewer in viewers:
        viewer.wait_for_text()
    for _ in range(20):
        assert there.get("chats/").status == 200
    assert not any(viewer.is_over for viewer in viewers)
    seen = [viewer.to_the_end() for viewer in viewers]
    assert all(events == seen[0] for events in seen)
    check_stored(ann, asked, seen[0])
    held = platform.query(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state LIKE 'idle in transaction%%'"
    )
    assert held == [(0,)]
