"""Tools of a real service: workers that are killed in mid-call, and persons who are asked first."""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.e2e.kit.client import Asked, Client, Viewer
from tests.e2e.kit.platform import QUICK_LEASE, Platform
from tests.e2e.kit.transcripts import check_stored
from tests.fakes.answers import answer_text
from tools.tests.tool_service import ToolService, function, serving

pytestmark = pytest.mark.e2e

FUNCTIONS = [
    function("charge"),
    function("look_up", idempotent=True),
    function("send", requires_approval=True),
    function("look_closely", idempotent=True, requires_approval=True),
]
UNKNOWN = "Its outcome is unknown; it was not repeated."


@dataclass
class Service:
    """Counts what is called by its key; the first call hangs until `let_go`, as if it took long."""

    tool: ToolService
    is_reached: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

    def reply(self, body: dict[str, Any]) -> dict[str, str]:
        if not self.is_reached.is_set():
            self.is_reached.set()
            self.let_go.wait(60)
        return {"content": f"{body['function']} done"}

    @property
    def calls_by_key(self) -> Counter[str]:
        return Counter(request.headers["idempotency-key"] for request in self.tool.calls)


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as tool:
        service = Service(tool)
        tool.functions = FUNCTIONS
        tool.reply = service.reply
        yield service
        service.let_go.set()


def ask(client: Client, service: Service, text: str, model: str = "fake-model") -> Asked:
    """A question to an assistant that has this service's functions."""
    made = client.post("tools/", {"kind": "discovery", "discovery_url": service.tool.url})
    assert made.status == 201, made
    assistant = client.post("assistants/", {"name": "With a service", "model": model}).body
    bound = client.post(f"assistants/{assistant['id']}/tools/", {"tool_id": made.body["id"]})
    assert bound.status in (200, 201), bound
    chat = client.post("chats/", {"assistant_id": assistant["id"]}).body
    return client.ask(text, chat_id=chat["id"])


def calling(name: str) -> str:
    return f"Do it. [[fake call={name} args=e30 tokens=3]]"


def decide(client: Client, asked: Asked, approved: bool) -> Any:
    calls = client.turn(asked.turn_id)["waiting_calls"]
    assert calls
    body = {"decisions": {call["call_id"]: approved for call in calls}}
    answer = client.post(f"turns/{asked.turn_id}/approve/", body)
    assert answer.status == 200, answer
    return answer.body


def kill_in_mid_call(platform: Platform, service: Service, worker: Any) -> None:
    """SIGKILL while the service works on the call; then another worker comes."""
    assert service.is_reached.wait(30), "the service was not called"
    worker.kill()
    service.let_go.set()
    platform.start_member("chat", **QUICK_LEASE)


def check_cut_call(client: Client, asked: Asked, viewer: Viewer, result: str) -> None:
    events = viewer.to_the_end()
    stored = check_stored(client, asked, events)
    assert [m["role"] for m in stored] == ["tool_call", "tool", "assistant"]
    assert stored[1]["content"].endswith(result)
    assert stored[2]["content"] == answer_text(3)
    turn = client.turn(asked.turn_id)
    assert (turn["status"], turn["attempts"]) == ("completed", 2)


@pytest.mark.parametrize(
    ("name", "times", "result"), [("charge", 1, UNKNOWN), ("look_up", 2, "look_up done")]
)
def test_a_worker_killed_between_a_call_and_its_result_does_not_call_twice_unless_it_is_safe(
    quick_platform, ann, service, name, times, result
):
    worker = quick_platform.chat_worker
    asked = ask(ann, service, calling(name))
    viewer = ann.watch(asked)
    kill_in_mid_call(quick_platform, service, worker)
    check_cut_call(ann, asked, viewer, result)
    assert list(service.calls_by_key.values()) == [times], "each call has one key, however often"


@pytest.mark.parametrize(
    ("name", "times", "result"), [("send", 1, UNKNOWN), ("look_closely", 2, "look_closely done")]
)
def test_an_approval_is_used_once_though_its_worker_is_killed(
    quick_platform, ann, service, name, times, result
):
    worker = quick_platform.chat_worker
    asked = ask(ann, service, calling(name))
    viewer = ann.watch(asked).wait_for_event("turn.waiting")
    assert service.calls_by_key == {}
    decide(ann, asked, True)
    kill_in_mid_call(quick_platform, service, worker)
    check_cut_call(ann, asked, viewer, result)
    assert list(service.calls_by_key.values()) == [times]


@pytest.mark.parametrize("approved", [True, False])
def test_a_turn_waits_for_a_person_through_the_death_of_everything(
    platform, ann, service, approved
):
    service.let_go.set()
    asked = ask(ann, service, calling("send"))
    viewer = ann.watch(asked).wait_for_event("turn.waiting")
    platform.chat_worker.kill()
    platform.web.kill()
    platform.redis_process.kill()
    platform.restore()
    platform.flush_redis()
    late = ann.watch(asked).wait_for_event("turn.waiting")
    assert late.names == ["turn.snapshot", "turn.waiting"]
    turn = ann.turn(asked.turn_id)
    assert (turn["status"], turn["attempts"]) == ("waiting", 0)
    busy = ann.post(f"chats/{asked.chat_id}/messages/", {"content": "And?"})
    assert (busy.status, busy.error["turn_id"]) == (409, asked.turn_id)

    assert decide(ann, asked, approved)["status"] == "queued"
    for each in (viewer, late):
        stored = check_stored(ann, asked, each.to_the_end())
        assert [m["role"] for m in stored] == ["tool_call", "tool", "assistant"]
        assert (stored[1]["content"] == "send done") == approved
    assert len(service.calls_by_key) == int(approved)
    assert ann.turn(asked.turn_id)["attempts"] == 1


def test_a_viewer_stays_connected_while_a_person_thinks(platform, ann, service):
    service.let_go.set()
    asked = ask(ann, service, calling("send"))
    viewer = ann.watch(asked).wait_for_event("turn.waiting")
    beats = viewer.comments
    viewer.wait_for(lambda v: v.comments >= beats + 2)
    decide(ann, asked, True)
    check_stored(ann, asked, viewer.to_the_end())
    assert viewer.connections == 1
    assert "turn.restarted" not in viewer.names


def test_a_waiting_turn_is_cancelled_and_its_viewers_are_told(platform, ann, service):
    asked = ask(ann, service, calling("send"))
    viewer = ann.watch(asked).wait_for_event("turn.waiting")
    assert ann.post(f"turns/{asked.turn_id}/cancel/").body["status"] == "cancelled"
    viewer.to_the_end()
    assert viewer.names[-1] == "turn.cancelled"
    assert service.calls_by_key == {}
    again = ann.ask("And? [[fake tokens=2]]", chat_id=asked.chat_id)
    check_stored(ann, again, ann.watch(again).to_the_end())
