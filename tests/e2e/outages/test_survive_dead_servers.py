"""The web process and Redis die in the middle of an answer: live tokens may be late, never lost."""

import signal

import pytest

from tests.e2e.kit.transcripts import check_stored
from tests.fakes.answers import answer_text
from tests.fixtures.ports import free_port

pytestmark = pytest.mark.e2e

LONG = "Tell me. [[fake tokens=100 itl=40]]"
"""4 seconds of text."""
WHOLE = answer_text(100)


def test_a_killed_web_process_does_not_stop_the_answer(platform, ann):
    asked = ann.ask(LONG)
    viewer = ann.watch(asked).wait_for_text(100)
    platform.web.kill()
    platform.restore()
    events = viewer.to_the_end()
    assert viewer.connections == 2
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    [answer] = check_stored(ann, asked, events)
    assert answer["content"] == viewer.text == WHOLE


def test_a_stopped_web_process_sends_its_viewers_to_another(platform, ann):
    asked = ann.ask(LONG)
    viewer = ann.watch(asked).wait_for_text(50)
    platform.stop_member(platform.web)
    platform.restore()
    [answer] = check_stored(ann, asked, viewer.to_the_end())
    assert answer["content"] == WHOLE


def test_viewers_of_several_web_processes_see_the_same(platform, ann):
    port = free_port()
    platform.start_web(port, AMBER_DB_POOL="4")
    asked = ann.ask("Tell me. [[fake tokens=40 itl=40]]")
    here, there = ann.watch(asked), ann.at(port).watch(asked)
    assert here.to_the_end() == there.to_the_end()


def test_redis_forgets_everything_in_mid_answer(platform, ann):
    asked = ann.ask(LONG)
    viewers = [ann.watch(asked).wait_for_text(100)]
    platform.flush_redis()
    viewers.append(ann.watch(asked))
    viewers.append(ann.watch(asked, last_event_id="5"))
    for viewer in viewers:
        [answer] = check_stored(ann, asked, viewer.to_the_end())
        assert answer["content"] == WHOLE
    after = ann.ask("Hello [[fake tokens=3]]")
    check_stored(ann, after, ann.watch(after).to_the_end())


def test_redis_forgets_everything_again_and_again(platform, ann):
    asked = ann.ask(LONG)
    viewer = ann.watch(asked).wait_for_text(20)
    for chars in (100, 200, 300):
        platform.flush_redis()
        viewer.wait_for_text(chars)
    [answer] = check_stored(ann, asked, viewer.to_the_end())
    assert answer["content"] == WHOLE


def test_redis_dies_in_mid_answer_and_comes_back(platform, ann):
    asked = ann.ask(LONG)
    viewer = ann.watch(asked).wait_for_text(100)
    platform.redis_process.kill()
    assert platform.readiness() == 503
    platform.restore()
    [answer] = check_stored(ann, asked, viewer.to_the_end())
    assert answer["content"] == WHOLE
    after = ann.ask("Hello [[fake tokens=3]]")
    check_stored(ann, after, ann.watch(after).to_the_end())
    cancelled = ann.ask(LONG)
    ann.watch(cancelled).wait_for_text()
    assert ann.post(f"turns/{cancelled.turn_id}/cancel/").status == 200
    assert ann.ended(cancelled.turn_id)["status"] == "cancelled"


def test_an_answer_ends_while_redis_is_away(platform, ann):
    """The last event, too, is found in Postgres; a question meanwhile waits for its ring."""
    asked = ann.ask("Tell me. [[fake tokens=60 itl=40]]")
    viewer = ann.watch(asked).wait_for_text(20)
    platform.redis_process.kill()
    events = viewer.to_the_end()
    [answer] = check_stored(ann, asked, events)
    assert answer["content"] == answer_text(60)
    late = ann.watch(asked).to_the_end()
    check_stored(ann, asked, late)

    waiting = ann.ask("Hello [[fake tokens=3]]")
    assert ann.turn(waiting.turn_id)["status"] == "queued"
    platform.restore()
    check_stored(ann, waiting, ann.watch(waiting).to_the_end())


def test_a_cancel_while_redis_is_away_is_found_in_postgres(platform, ann):
    asked = ann.ask("Tell me. [[fake tokens=1000 itl=40]]")
    ann.watch(asked).wait_for_text(20)
    platform.redis_process.kill()
    assert ann.post(f"turns/{asked.turn_id}/cancel/").status == 200
    assert ann.ended(asked.turn_id)["status"] == "cancelled"
    [answer] = ann.written(asked)
    assert answer_text(1000).startswith(answer["content"])


def test_a_redis_that_hangs_holds_up_neither_the_answer_nor_a_question(platform, ann):
    asked = ann.ask("Tell me. [[fake tokens=60 itl=40]]")
    viewer = ann.watch(asked).wait_for_text(20)
    platform.redis_process.process.send_signal(signal.SIGSTOP)
    try:
        waiting = ann.ask("Hello [[fake tokens=3]]")
        events = viewer.to_the_end()
        assert ann.turn(waiting.turn_id)["status"] == "queued"
    finally:
        platform.redis_process.process.send_signal(signal.SIGCONT)
    [answer] = check_stored(ann, asked, events)
    assert answer["content"] == answer_text(60)
    check_stored(ann, waiting, ann.watch(waiting).to_the_end())


def test_connections_of_postgres_are_cut_in_mid_answer(platform, ann):
    asked = ann.ask(LONG)
    viewer = ann.watch(asked).wait_for_text(50)
    platform.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    [answer] = check_stored(ann, asked, viewer.to_the_end())
    assert answer["content"] == WHOLE
