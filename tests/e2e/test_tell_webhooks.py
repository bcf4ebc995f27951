"""Webhooks of real processes: signed up over HTTP, told of turns by key, through a receiver that fails and
workers that die; each signature is checked by the lines of docs/public-api.md.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from amber.lib.tests.local_server import LocalServer, Request, say
from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import Platform
from tests.e2e.kit.sessions import new_account, send, signed_in
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).resolve().parents[2] / "docs/public-api.md"
SIX = "[[fake tokens=6]]"


@dataclass
class Receiver:
    """Answers each event with the next of `statuses`, then with 200; the first of all hangs until
    `let_go`, if it `hangs`."""

    server: LocalServer
    statuses: list[int] = field(default_factory=list)
    hangs: bool = False
    let_go: threading.Event = field(default_factory=threading.Event)

    def answer(self, connection: Any, request: Request) -> None:
        if self.hangs and len(self.events) == 1:
            self.let_go.wait(60)
        say(b"", status=self.statuses.pop(0) if self.statuses else 200)(connection, request)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/hook"

    @property
    def events(self) -> list[Request]:
        return list(self.server.requests)


@dataclass
class Person:
    """Signed in, with a key, and with a webhook that is told of its turns."""

    http: httpx2.Client
    caller: Client
    webhook: dict[str, Any]

    @property
    def deliveries(self) -> list[dict[str, Any]]:
        """The log, newest first."""
        answer = self.http.get(f"/api/v1/webhooks/{self.webhook['id']}/deliveries/")
        found: list[dict[str, Any]] = answer.raise_for_status().json()["results"]
        return found

    def rotate(self) -> str:
        answer = send(self.http, "POST", f"/api/v1/webhooks/{self.webhook['id']}/rotate/", {})
        secret: str = answer["secret"]
        return secret

    def answered_later(self, platform: Platform) -> dict[str, Any]:
        """A response that nobody waited for, once it is over."""
        body = {"model": "fake-model", "input": SIX}
        headers = {"Prefer": "respond-async"}
        begun = self.caller.post("/v1/responses", body, headers=headers)
        sent = {name.lower(): value for name, value in begun.headers.items()}
        assert (begun.status, sent["preference-applied"]) == (202, "respond-async")
        address = sent["location"]
        assert address == f"/v1/responses/{begun.body['id']}"

        def is_over() -> bool:
            return bool(self.caller.get(address).body["status"] == "completed")

        platform.wait_for(is_over, "end of the response")
        ended: dict[str, Any] = self.caller.get(address).body
        assert ended["output"][0]["content"][0]["text"] == answer_text(6)
        return ended


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with LocalServer() as server:
        receiver = Receiver(server)
        server.routes["/hook"] = receiver.answer
        yield receiver
        receiver.let_go.set()


@pytest.fixture
def person(platform: Platform, receiver: Receiver) -> Iterator[Person]:
    with signed_in(platform, new_account(platform, "wanda")) as http:
        key = send(http, "POST", "/api/v1/api-keys/", {"name": "hooks", "scopes": ["public"]})[
            "key"
        ]
        webhook = send(http, "POST", "/api/v1/webhooks/", {"url": receiver.url})
        platform.stop_member(platform.chat_worker)  # a new one knows at once who has webhooks
        platform.start_member("chat")
        yield Person(http, Client(platform.port, key), webhook)


@pytest.fixture(scope="module")
def is_from_amber() -> Callable[[str, str, bytes], bool]:
    """What the page tells receivers to do."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (block,) = [block for block in blocks if "def is_from_amber" in block]
    names: dict[str, Any] = {}
    exec(compile(block, PAGE.name, "exec"), names)
    found: Callable[[str, str, bytes], bool] = names["is_from_amber"]
    return found


def signature(event: Request) -> str:
    return event.headers["amber-signature"]


def kill_deliverer(platform: Platform) -> None:
    (worker,) = [member for member in platform.members if member.role == "ingest"]
    worker.kill()


def make_due(platform: Platform) -> None:
    """As if the time until the next attempt had passed."""
    platform.query("UPDATE public_api_webhookdelivery SET due_at = now() RETURNING id")


def wait_for_delivery(platform: Platform, person: Person, attempts: int) -> dict[str, Any]:
    def is_delivered() -> bool:
        return bool(person.deliveries) and person.deliveries[0]["status"] == "delivered"

    platform.wait_for(is_delivered, "delivery")
    (delivery,) = person.deliveries
    assert (delivery["attempts"], delivery["http_status"]) == (attempts, 200)
    return delivery


def test_a_receiver_that_failed_is_told_again(platform, person, receiver, is_from_amber):
    receiver.statuses = [500]
    response = person.answered_later(platform)
    platform.wait_for(lambda: person.deliveries[0]["http_status"] == 500, "first attempt")
    (failed,) = person.deliveries
    assert (failed["status"], failed["attempts"]) == ("queued", 1)
    assert failed["error"] == "The address answered with 500."
    assert failed["next_attempt_at"] is not None
    make_due(platform)
    wait_for_delivery(platform, person, attempts=2)

    first, second = receiver.events
    assert json.loads(first.body) == json.loads(second.body)
    told = json.loads(second.body)
    assert (told["type"], told["id"]) == ("turn.completed", failed["event_id"])
    assert told["turn"]["response_id"] == response["id"]
    assert told["turn"]["usage"]["completion_tokens"] == 6
    assert answer_text(6) not in second.body.decode()
    secret = person.webhook["secret"]
    for event in (first, second):
        assert is_from_amber(secret, signature(event), event.body)
        assert not is_from_amber(secret, signature(event), event.body + b" ")
        assert not is_from_amber(f"{secret}x", signature(event), event.body)


def test_what_no_worker_was_there_to_tell_is_told_later(platform, person, receiver):
    kill_deliverer(platform)
    person.answered_later(platform)
    assert [delivery["status"] for delivery in person.deliveries] == ["queued"]
    assert receiver.events == []
    platform.start_member("ingest")
    wait_for_delivery(platform, person, attempts=1)
    assert len(receiver.events) == 1


def test_a_worker_killed_in_mid_delivery_is_made_up_for(platform, person, receiver, is_from_amber):
    receiver.hangs = True
    person.answered_later(platform)
    platform.wait_for(lambda: receiver.events, "first attempt")
    kill_deliverer(platform)
    receiver.let_go.set()
    lost = "UPDATE public_api_webhookdelivery SET lease_until = now() WHERE status = 'running'"
    assert platform.query(f"{lost} RETURNING id")
    platform.start_member("ingest")
    wait_for_delivery(platform, person, attempts=2)
    first, second = receiver.events
    assert json.loads(first.body)["id"] == json.loads(second.body)["id"]
    assert is_from_amber(person.webhook["secret"], signature(second), second.body)


def test_while_a_secret_is_changed_both_sign(platform, person, receiver, is_from_amber):
    new = person.rotate()
    assert new != person.webhook["secret"]
    person.answered_later(platform)
    wait_for_delivery(platform, person, attempts=1)
    (event,) = receiver.events
    assert signature(event).count("v1=") == 2
    for secret in (new, person.webhook["secret"]):
        assert is_from_amber(secret, signature(event), event.body)
