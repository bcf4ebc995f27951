"""`Idempotency-Key`: the same POST twice is one turn, and one answer."""

import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.kit.client import Viewer
from tests.e2e.kit.transcripts import check_stored
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.e2e

ASK = {"content": "Tell me. [[fake tokens=40 itl=40]]"}


@pytest.fixture
def once():
    return {"Idempotency-Key": secrets.token_hex(8)}


def test_the_same_post_twice_is_one_turn_live_or_over(platform, ann, once):
    chat_id = ann.new_chat()
    path = f"chats/{chat_id}/messages/"
    first = ann.post(path, ASK, headers=once)
    live = ann.post(path, ASK, headers=once)
    assert (first.status, live.status) == (201, 201)
    assert live.body == first.body
    ann.ended(first.body["turn"]["id"])
    assert ann.post(path, ASK, headers=once).body == first.body
    assert [m["role"] for m in ann.messages(chat_id)] == ["human", "assistant"]
    other = ann.post(path, {"content": "Something else"}, headers=once)
    assert (other.status, other.error["code"]) == (409, "idempotency_mismatch")


def test_the_same_post_as_a_stream_is_the_same_stream(platform, ann, once):
    chat_id = ann.new_chat()
    path = f"chats/{chat_id}/messages/"
    first = Viewer(ann, "POST", path, ASK, headers=once)
    first.wait_for_text()
    again = Viewer(ann, "POST", path, ASK, headers=once)
    assert again.to_the_end() == first.to_the_end()
    late = Viewer(ann, "POST", path, ASK, headers=once)
    assert late.to_the_end() == first.events
    assert late.text == answer_text(40)
    assert [m["role"] for m in ann.messages(chat_id)] == ["human", "assistant"]


def test_many_at_once_are_one_turn(platform, ann, once):
    asked = ann.ask("Tell me. [[fake tokens=5]]")
    check_stored(ann, asked, ann.watch(asked).to_the_end())
    path = f"messages/{asked.message_id}/regenerate/"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ann.post(path, {}, headers=once), range(8)))
    made = [a for a in answers if a.status == 201]
    refused = [a for a in answers if a.status != 201]
    assert len({a.body["turn"]["id"] for a in made}) == 1
    assert {a.error["code"] for a in refused} <= {"idempotency_in_progress"}
    assert all("Retry-After" in a.headers or "retry-after" in a.headers for a in refused)
    ann.ended(made[0].body["turn"]["id"])
    branches = ann.messages(asked.chat_id, all_branches=True)
    assert sorted(m["role"] for m in branches) == ["assistant", "assistant", "human"]
